package read

import (
	"context"

	"github.com/shaledb/shale/internal/model"
)

// Source holds series: the head, the archive, another node. It is safe for concurrent use.
//
// The range of a request is already cut by retention, and a source applies the request's horizon. The querier
// charges the request's quota for each series and sample that it returns. A source charges, with TakeBytes,
// only the memory that it holds besides those, and gives it back when its cursors are closed. A source adds
// what it looked at to the request's cost, but neither series nor samples. Errors belong to the classes of
// package model; the querier retries none of them.
type Source interface {
	// Select returns cursors over the series that satisfy the request, each in key order, with the rows of the
	// request's family in the order of the file format. When it returns, everything that the result needs is
	// pinned. Rows that move to a source that is asked later are therefore seen twice, never missed. On an
	// error nothing stays pinned.
	Select(ctx context.Context, req *model.Request) ([]model.Cursor, error)
	// LabelNames calls emit with the label names of the series that satisfy the request; without matchers, of
	// all series. Names come in any order and may repeat. The bytes are valid during the call. An error from
	// emit ends the walk and is returned.
	LabelNames(ctx context.Context, req *model.Request, emit func(name []byte) error) error
	// LabelValues calls emit with the values of one label in the same way.
	LabelValues(ctx context.Context, req *model.Request, name string, emit func(value []byte) error) error
}

// LabelSource is an optional interface of a source that finds all labels at the cost of one list.
type LabelSource interface {
	// Labels calls emit with the labels of the series that satisfy the request, as [Source.LabelNames] does
	// with their names.
	Labels(ctx context.Context, req *model.Request, emit func(name, value []byte) error) error
}

// Keeper is a source whose rows change without notice. Kept adds to the cost of a request, whose rows are not
// read, what reading them would have added.
type Keeper interface {
	Kept(req *model.Request)
}
