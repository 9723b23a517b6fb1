package loki

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql"
)

// Engine evaluates queries on the lines of tenants: a [logql.Engine]. It is safe for concurrent use. Errors
// are of the classes of package model; those of class invalid have Loki's texts.
type Engine interface {
	// Lines answers a query for lines.
	Lines(ctx context.Context, q *logql.Query) (*logql.Lines, error)
	// LabelNames and LabelValues return what the selected streams have, sorted, and Series the labels of
	// each.
	LabelNames(ctx context.Context, s *logql.Selection) ([]string, error)
	LabelValues(ctx context.Context, s *logql.Selection, name string) ([]string, error)
	Series(ctx context.Context, s *logql.Selection) ([]model.Labels, error)
	// Volume counts the selected streams, and their lines.
	Volume(ctx context.Context, s *logql.Selection) (logql.Volume, error)
	// Tail hands out lines as they come, until the context ends or emit returns an error, which it returns.
	Tail(ctx context.Context, q *logql.TailQuery, emit func(*logql.Batch) error) error
}

var _ Engine = (*logql.Engine)(nil)
