package setup

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/store/topics"
)

// Adopt begins an epoch with a topic that exists.
type Adopt struct {
	flags  `embed:""`
	From   string `default:"" enum:",start,end" placeholder:"start|end" help:"Where Shale's records begin in a topic that is not empty: at the start, if they are all Shale's, as in a mirror, or at the end, if none is."`
	GiveUp bool   `name:"give-up-unshipped" help:"Go on although the topic before is gone, with what was not in the bucket."`
	DryRun bool   `help:"Say what would be recorded, and record nothing."`
}

// Help teaches the command by examples.
func (*Adopt) Help() string {
	return `Use a topic that was made with Kafka's tools, where people may not create topics by themselves. It is checked first:

    shale kafka adopt --config shale.yaml --dry-run
    shale kafka adopt --config shale.yaml

Go on with another topic that is as large or twice as large, as 'shale kafka double' does with one that it makes. The old
topic takes no more records from then on. It must stay until all of its records are in the bucket:

    shale kafka adopt --config shale.yaml --kafka.topic shale-32

After the topic was lost, with all that the bucket did not have yet, make a new one and say so:

    shale kafka adopt --config shale.yaml --give-up-unshipped`
}

// Run checks the topic and records it.
func (c *Adopt) Run(ctx context.Context, k *kong.Context, environ []string, stdout io.Writer) error {
	p, err := c.open(ctx, k, environ, stdout)
	if err != nil {
		return err
	}
	t, err := kafka.Describe(ctx, p.connection, p.topic)
	if err != nil {
		return err
	}
	r := &report{Topic: t, Findings: kafka.Check(t)}
	if err := refusal(t.Name, r.Findings); err != nil {
		return err
	}
	last := topics.Latest(p.epochs)
	switch e := topics.OfID(p.epochs, t.ID); {
	case e == nil:
	case e == last:
		return fmt.Errorf("topic %s is that of epoch %d already; there is nothing to do", t.Name, e.Number)
	default:
		return fmt.Errorf("topic %s is that of epoch %d, which has ended: a topic is used once. Make another one with shale kafka create --no-record", t.Name, e.Number)
	}
	next := topics.Epoch{Topic: t.Name, ID: t.ID, Partitions: t.Partitions}
	if next.Begins, err = c.begins(ctx, p, t); err != nil {
		return err
	}
	if next.BeforeLost, err = c.lost(ctx, p, last); err != nil {
		return err
	}
	if c.DryRun {
		if err := topics.Follows(p.epochs, &next); err != nil {
			return err
		}
		r.Epoch = uint64(len(p.epochs) + 1)
		return p.print(r)
	}
	return p.begin(ctx, r, next)
}

// begins returns where Shale's records begin in each partition.
func (c *Adopt) begins(ctx context.Context, p *place, t *kafka.Topic) ([]int64, error) {
	partitions := make([]int32, t.Partitions)
	for i := range partitions {
		partitions[i] = int32(i)
	}
	has, err := kafka.Offsets(ctx, p.connection, t.Name, partitions...)
	if err != nil {
		return nil, err
	}
	begins := make([]int64, t.Partitions)
	records := int64(0)
	for _, n := range partitions {
		records += has[n].End - has[n].Start
		if begins[n] = has[n].Start; c.From == "end" {
			begins[n] = has[n].End
		}
	}
	if records > 0 && c.From == "" {
		return nil, usage("topic %s has %d %s: say --from start if all of its records are Shale's, and --from end if none is", t.Name, records, english.PluralWord(int(records), "record", ""))
	}
	return begins, nil
}

// lost reports whether the topic before is gone, which an operator has to accept.
func (c *Adopt) lost(ctx context.Context, p *place, last *topics.Epoch) (bool, error) {
	if last == nil {
		return false, nil
	}
	before, err := kafka.Describe(ctx, p.connection, last.Topic)
	if err != nil && !errors.Is(err, kafka.ErrNoTopic) {
		return false, err
	}
	if err == nil && before.ID == last.ID {
		return false, nil
	}
	if !c.GiveUp {
		return false, fmt.Errorf("topic %s of epoch %d is gone, and so are its records that were not in the bucket; use --give-up-unshipped to continue without them", last.Topic, last.Number)
	}
	return true, nil
}
