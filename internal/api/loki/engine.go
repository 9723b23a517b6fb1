package loki

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/logql/fields"
	"github.com/shaledb/shale/internal/read/logql/patterns"
)

// Engine evaluates queries on the lines of tenants: a [logql.Engine]. It is safe for concurrent use. Errors
// are of the classes of package model; those of class invalid have Loki's texts.
type Engine interface {
	// Lines evaluates a query for lines.
	Lines(ctx context.Context, q *logql.Query) (*logql.Lines, error)
	// Numbers evaluates a query for numbers.
	Numbers(ctx context.Context, q *logql.MetricQuery) (*logql.Numbers, error)
	// LabelNames and LabelValues return the sorted label names, or the values of one label, of the selected
	// streams. Series returns the labels of each stream.
	LabelNames(ctx context.Context, s *logql.Selection) ([]string, error)
	LabelValues(ctx context.Context, s *logql.Selection, name string) ([]string, error)
	Series(ctx context.Context, s *logql.Selection) ([]model.Labels, error)
	// Volume counts the selected streams, their chunks, bytes and lines.
	Volume(ctx context.Context, s *logql.Selection) (logql.Volume, error)
	// VolumeBy returns the bytes of groups of streams, in intervals of the range.
	VolumeBy(ctx context.Context, q *logql.VolumeQuery) ([]logql.VolumeGroup, error)
	// DetectedLabels returns the labels of the selected streams that people browse by.
	DetectedLabels(ctx context.Context, s *logql.Selection) ([]logql.DetectedLabel, error)
	// DetectedFields returns at most limit fields of the lines of a query, and DetectedValues at most limit
	// values of one field.
	DetectedFields(ctx context.Context, q *logql.Query, limit int) ([]fields.Field, error)
	DetectedValues(ctx context.Context, q *logql.Query, field string, limit int) ([]string, error)
	// Patterns returns the patterns of the selected lines.
	Patterns(ctx context.Context, q *logql.PatternQuery) ([]patterns.Series, error)
	// Tail calls emit with new lines as they arrive, until the context ends or emit returns an error. It
	// returns that error.
	Tail(ctx context.Context, q *logql.TailQuery, emit func(*logql.Batch) error) error
}

var _ Engine = (*logql.Engine)(nil)
