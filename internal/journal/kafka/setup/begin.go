package setup

import (
	"context"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/topics"
)

// follows is what begin needs a version for.
const follows = "a topic that follows another one"

// begin records an epoch, and prints the report about its topic. The topic before is sealed first: whoever
// learns of the epoch then knows where the one before ends, and a gateway that is late appends nothing to it.
// If the command ends in between, no write is acknowledged until it is run again.
func (p *place) begin(ctx context.Context, r *report, next topics.Epoch) error {
	if err := topics.Follows(p.epochs, &next); err != nil {
		return err
	}
	last := topics.Latest(p.epochs)
	if last != nil && !next.BeforeLost {
		if err := topics.NeedVersion(p.version, topics.VersionLeaders, follows); err != nil {
			return err
		}
		if err := p.whole(ctx, last); err != nil {
			return err
		}
		if err := topics.Writable(ctx, p.bucket, last); err != nil { // before writes wait for the record
			return err
		}
		var err error
		if next.BeforeEnds, err = kafka.Seal(ctx, p.connection, last.Topic, last.ID, last.Partitions); err != nil {
			return err
		}
	}
	next, err := topics.Add(ctx, p.bucket, p.epochs, next)
	if errors.Is(err, topics.ErrTaken) {
		return p.taken(ctx, &next)
	}
	if err != nil && len(next.BeforeEnds) > 0 {
		return fmt.Errorf("topic %s takes no more records, and topic %s is not recorded yet: run the command again: %w", last.Topic, next.Topic, err)
	}
	if err != nil {
		return err
	}
	r.Epoch = next.Number
	return p.print(r)
}

// taken says which epoch another process has recorded meanwhile. To run the command again would double once
// more.
func (p *place) taken(ctx context.Context, next *topics.Epoch) error {
	won, err := topics.Next(ctx, p.bucket, next.Number-1)
	if err != nil || won == nil {
		return fmt.Errorf("%w as epoch %d; see shale kafka check: %w", topics.ErrTaken, next.Number, err)
	}
	return fmt.Errorf("another command was faster: topic %s with %s is epoch %d and takes writes; topic %s is not used. Do not run this command again: it would begin one epoch more",
		won.Topic, english.Plural(int(won.Partitions), "partition", ""), won.Number, next.Topic)
}

// whole returns an error if partitions of an epoch cannot be read up to their ends. Brokers may have lost
// records that the bucket has: others may have taken their offsets, and an end below what the bucket has
// would leave these out without a word. Or records were deleted before they were read, or one cannot be read:
// then the partitions of the next epoch would wait without end, and queries with them.
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
	for _, n := range partitions {
		first, x := shipped[n], has[n]
		switch {
		case x.End < first:
			return fmt.Errorf("topic %s, partition %d ends before offset %d, and the bucket has records up to %d: brokers have lost records; see shale kafka check", e.Topic, n, x.End, first)
		case first < x.Start:
			return fmt.Errorf("topic %s, partition %d: Kafka has deleted the records with offsets %d to %d, which are not in the bucket. Give them up first: shale kafka accept-loss %d:%d-%d",
				e.Topic, n, first, x.Start-1, n, first, x.Start-1)
		case first == x.End:
			continue
		}
		if err := readable(ctx, p.connection, e, n, first); errors.Is(err, model.ErrCorrupt) {
			return fmt.Errorf("%w. Give it up first: shale kafka accept-loss %d:%d", err, n, first)
		} else if err != nil {
			return err
		}
	}
	return nil
}
