package setup

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/store/topics"
)

// begin records an epoch, and prints the report about its topic. The topic before is sealed first: whoever
// learns of the epoch then knows where the one before ends, and a gateway that is late appends nothing to it.
// If the command ends in between, no write is acknowledged until it is run again.
func (p *place) begin(ctx context.Context, r *report, next topics.Epoch) error {
	if err := topics.Follows(p.epochs, &next); err != nil {
		return err
	}
	last := topics.Latest(p.epochs)
	if last != nil && !next.BeforeLost {
		if err := p.whole(ctx, last); err != nil {
			return err
		}
		var err error
		if next.BeforeEnds, err = kafka.Seal(ctx, p.connection, last.Topic, last.ID, last.Partitions); err != nil {
			return err
		}
	}
	next, err := topics.Add(ctx, p.bucket, p.epochs, next)
	if err != nil && len(next.BeforeEnds) > 0 {
		return fmt.Errorf("topic %s takes no more records, and topic %s is not recorded yet: run the command again: %w", last.Topic, next.Topic, err)
	}
	if err != nil {
		return err
	}
	r.Epoch = next.Number
	return p.print(r)
}

// whole returns an error if brokers have lost records that the bucket has: others may have taken their
// offsets, and an end below what the bucket has would leave these out without a word.
func (p *place) whole(ctx context.Context, e *topics.Epoch) error {
	shipped, _, err := p.shipped(ctx, e)
	if err != nil {
		return err
	}
	partitions := make([]int32, e.Partitions)
	for n := range partitions {
		partitions[n] = int32(n)
	}
	has, err := kafka.Offsets(ctx, p.connection, e.Topic, partitions...)
	if err != nil {
		return err
	}
	for n, first := range shipped {
		if end := has[int32(n)].End; end < first {
			return fmt.Errorf("topic %s, partition %d ends before offset %d, and the bucket has records up to %d: brokers have lost records; see shale kafka check", e.Topic, n, end, first)
		}
	}
	return nil
}
