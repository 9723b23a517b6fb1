package promqltest

import (
	"testing"

	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/write"
)

// Engine is a running store without retention and without a limit on the age of samples.
type Engine interface {
	Path() *write.Path
	Querier() *read.Querier
	// Flush moves all rows from buffers to local parts. Ship moves all rows to the bucket. Both return when it
	// is done.
	Flush() error
	Ship() error
	// Merge ships and then merges the blocks in the bucket.
	Merge() error
	Close() error
}

// Open makes an empty engine.
type Open func(t testing.TB) Engine

// stage is where the rows are when they are queried.
type stage struct {
	name string
	move func(Engine) error
}

func stages() []stage {
	return []stage{
		{"buffers", func(Engine) error { return nil }},
		{"parts", Engine.Flush},
		{"bucket", Engine.Ship},
		{"merged", Engine.Merge},
	}
}
