package read

import (
	"context"

	"github.com/shaledb/shale/internal/model"
)

// Source holds series: the head, the archive, another node. It is used by many goroutines at once.
//
// A request comes with its range bounded by retention. The querier charges the request's quota with every
// series and sample that it hands on; a source charges only, by TakeBytes, what it holds in memory beside
// those, and gives that back when its cursors are closed. A source adds to the request's cost what it looked
// at, but neither series nor samples. Errors are of the classes of package model; the querier retries none of
// them.
type Source interface {
	// Select returns cursors over the series that satisfy the request, each in key order, with the rows of the
	// request's family in the order of the file format. Everything that the answer needs is pinned when it
	// returns, so that rows which move to a source that is asked later are seen twice, never missed. On an
	// error nothing stays pinned.
	Select(ctx context.Context, req *model.Request) ([]model.Cursor, error)
	// LabelNames calls emit with the label names of the series that satisfy the request; no matchers select
	// all. Order does not matter and a name may come more than once. The bytes are valid during the call. An
	// error of emit ends the walk and is returned.
	LabelNames(ctx context.Context, req *model.Request, emit func(name []byte) error) error
	// LabelValues does the same for the values of one label.
	LabelValues(ctx context.Context, req *model.Request, name string, emit func(value []byte) error) error
}
