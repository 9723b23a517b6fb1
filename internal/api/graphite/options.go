package graphite

import "github.com/shaledb/shale/internal/api"

// Options build a Handler.
type Options struct {
	api.Options
	// Tags answers questions about tags.
	Tags Tags
	// Names finds the names of series without tags.
	Names Finder
	// Functions are those that targets may call, for /functions.
	Functions []Function
	// Render evaluates the targets of /render.
	Render Renderer
	// Events finds events.
	Events Events
}
