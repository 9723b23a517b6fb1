package archive

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// textCursor walks the series of one block that satisfy a request for lines.
type textCursor struct {
	*cursor
	text *part.TextCursor
}

// Chunks appends the chunks of the current series that have rows left after deletions.
func (c *textCursor) Chunks(ctx context.Context, dst []model.TextChunk) ([]model.TextChunk, error) {
	from := len(dst)
	dst, err := c.text.Chunks(ctx, c.ranks[c.at], dst)
	if err != nil {
		return dst, c.named(err)
	}
	return c.cuts.Chunks(ctx, dst, from, c.named)
}
