package logql

import (
	"context"

	"github.com/shaledb/shale/internal/read/logql/fields"
)

// DetectedFields returns at most limit fields of the lines of a query, whose own Limit makes them a sample.
func (e *Engine) DetectedFields(ctx context.Context, q *Query, limit int) ([]fields.Field, error) {
	d, err := fields.NewDetector(ctx, q.Quota, limit)
	if err != nil {
		return nil, err
	}
	if err := e.sample(ctx, q, d.Add); err != nil {
		return nil, err
	}
	return d.Fields(), nil
}

// DetectedValues returns the sorted values of a field in the lines of a query, at most limit of them.
func (e *Engine) DetectedValues(ctx context.Context, q *Query, field string, limit int) ([]string, error) {
	v, err := fields.NewValues(ctx, q.Quota, field, limit)
	if err != nil {
		return nil, err
	}
	if err := e.sample(ctx, q, v.Add); err != nil {
		return nil, err
	}
	return v.Sorted(), nil
}

// sample calls add with the lines of a query, stream by stream.
func (e *Engine) sample(ctx context.Context, q *Query, add func(*fields.Line) error) error {
	categorized := *q
	categorized.Categorize = true
	lines, err := e.Lines(ctx, &categorized)
	if err != nil {
		return err
	}
	for i := range lines.Streams {
		s := &lines.Streams[i]
		for j := range s.Entries {
			x := &s.Entries[j]
			if err := add(&fields.Line{Stream: s.Labels, Text: x.Line, Metadata: x.Metadata, Parsed: x.Parsed}); err != nil {
				return err
			}
		}
	}
	return nil
}
