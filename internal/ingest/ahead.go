package ingest

import (
	"context"
	"errors"
	"time"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/model"
)

// lookAhead gives the head the labels in all records from an offset on. Rows before those records may belong
// to them. A partition never goes on past rows whose labels it lacks, so that it cannot wait for them.
func (p *Partition) lookAhead(ctx context.Context, from int64) error {
	r, err := p.openReader(ctx, from, nil, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	began, series := time.Now(), 0
	for r.End() < 0 || r.Next() < r.End() {
		err := r.Read(ctx, func(rec *kafka.Record) error {
			series += rec.Batch.Labels.Len()
			if rec.Batch.Labels.Len() == 0 {
				return nil
			}
			return p.head.Learn(ctx, rec.Batch)
		})
		if errors.Is(err, model.ErrCorrupt) {
			break // what stops the reading comes up again once the rows before it are applied
		}
		if err != nil {
			return err
		}
	}
	p.o.Logger.Info("searched later records for missing labels", "partition", p.o.Partition, "from", from, "to", r.Next(), "series", series,
		"took", time.Since(began).Round(time.Millisecond))
	return nil
}
