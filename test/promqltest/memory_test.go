package promqltest

import (
	"context"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/readtest"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/writetest"
)

// memoryEngine is the write and the read path over maps. A test that fails only over Shale's store fails
// because of the store.
type memoryEngine struct {
	writetest.Unknown

	buffers, parts, bucket *readtest.Memory
	path                   *write.Path
	querier                *read.Querier
}

func openMemory(testing.TB) Engine {
	e := &memoryEngine{buffers: readtest.NewMemory(3), parts: readtest.NewMemory(2), bucket: readtest.NewMemory(1)}
	e.path = write.New(write.Options{Seed: 1, Head: e, Journal: e})
	e.querier = read.New(read.Options{Sources: []read.Source{e.buffers, e.parts, e.bucket}})
	return e
}

func (e *memoryEngine) Append(_ context.Context, b *model.Batch) error {
	e.buffers.Apply(b)
	return nil
}

func (e *memoryEngine) Path() *write.Path      { return e.path }
func (e *memoryEngine) Querier() *read.Querier { return e.querier }

func (e *memoryEngine) Flush() error {
	e.buffers.MoveTo(e.parts)
	return nil
}

func (e *memoryEngine) Ship() error {
	e.buffers.MoveTo(e.parts)
	e.parts.MoveTo(e.bucket)
	return nil
}

// Merge does nothing.
func (e *memoryEngine) Merge() error { return e.Ship() }

func (e *memoryEngine) Close() error { return nil }

func TestMemory(t *testing.T) { Run(t, openMemory) }
