package logql

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/vector"
)

// MetricQuery is a query for numbers.
type MetricQuery struct {
	// Tenants are whose lines are counted, each once. If there are several, labels say whose a line is.
	Tenants []string
	// Prepared is a query for numbers.
	Prepared *Prepared
	// Steps are when it is evaluated.
	Steps vector.Steps
	// Instant says that the query asks for one instant: its result is a vector.
	Instant bool
	// MaxSeries bounds the series of the result; 0: only their memory does.
	MaxSeries int
	// Partial cuts a result of more series, with a warning, instead of refusing it.
	Partial bool
	// Quota bounds the query and Cost tells what it read. The result stays charged until the quota is released.
	Quota *model.Quota
	Cost  *model.Cost
}

// ResultKind says what a result consists of.
type ResultKind uint8

// The kinds of results.
const (
	ResultMatrix ResultKind = iota // series with a value for each step
	ResultVector                   // series with one value
	ResultScalar                   // a number: one series without labels
)

// Numbers are the result of a query for numbers.
type Numbers struct {
	Kind     ResultKind
	Matrix   *vector.Matrix
	Warnings []string
	Stats    Stats
}

// Numbers answers a query for numbers. Its errors are of the classes of package model; those of class invalid
// have Loki's texts.
func (e *Engine) Numbers(ctx context.Context, q *MetricQuery) (*Numbers, error) {
	return nil, ErrMetric
}
