package read

import "github.com/shaledb/shale/internal/model"

// cursorItem is a cursor with the key of its current series, kept here so that comparing does not call the cursor.
type cursorItem struct {
	key    model.Key
	cursor model.Cursor
}

// Less orders cursors by key.
func (c cursorItem) Less(o cursorItem) bool { return c.key.Less(o.key) }

// textItem is a cursor, by its index in the set, with the key of its current series.
type textItem struct {
	key    model.Key
	cursor int
}

// Less orders cursors by key.
func (c textItem) Less(o textItem) bool { return c.key.Less(o.key) }
