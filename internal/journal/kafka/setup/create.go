package setup

import (
	"context"
	"fmt"
	"io"
	"math/bits"
	"time"

	"github.com/alecthomas/kong"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/store/topics"
)

// Create makes a topic.
type Create struct {
	flags      `embed:""`
	Partitions int32         `default:"16" placeholder:"N" help:"Partitions, a power of two. Each is read by one ingester at a time: take four times as many as there will ever be ingesters."`
	Replicas   int16         `default:"3" placeholder:"N" help:"Brokers that keep each record."`
	MinInsync  int           `default:"2" placeholder:"N" help:"Brokers that must have a record before it is acknowledged."`
	State      bool          `help:"Make only the state topic, which is named like the topic with -state after it: for a topic that was made without one."`
	NoRecord   bool          `help:"Make the topic, and record nothing. 'shale kafka adopt' records it."`
	Retention  time.Duration `default:"48h" placeholder:"TIME" help:"How long records stay: ingesters may be away that long."`
	MaxMessage int64         `name:"max-message-bytes" default:"16777216" placeholder:"BYTES" help:"Largest record: the part of a request that one partition gets."`
}

// Help teaches the command by examples.
func (*Create) Help() string {
	return `Make the topic on a cluster of three brokers, with 16 partitions, and record it in the bucket:

    shale kafka create --kafka.brokers kafka-1:9092,kafka-2:9092 --bucket 's3://NAME/PREFIX?region=REGION'

Try it with one broker. Its disk is then the only copy of what the bucket does not have yet:

    shale kafka create --kafka.brokers 127.0.0.1:9092 --bucket ./bucket --partitions 4 --replicas 1 --min-insync 1

Make a topic with twice as many partitions, which shale kafka adopt records later:

    shale kafka create --config shale.yaml --kafka.topic shale-32 --partitions 32 --no-record

The settings kafka.* and bucket may also come from the file of the server (--config) or from the environment. A
topic is never changed by this command. docs/kafka.md explains which loss each setting prevents.`
}

// Validate checks the numbers.
func (c *Create) Validate() error {
	switch {
	case c.Partitions < 1 || c.Partitions > topics.MaxPartitions || bits.OnesCount32(uint32(c.Partitions)) != 1:
		return fmt.Errorf("--partitions: expected a power of two from 1 to %d, got %d", topics.MaxPartitions, c.Partitions)
	case c.Replicas < 1 || c.MinInsync < 1 || c.MinInsync > int(c.Replicas):
		return fmt.Errorf("--replicas and --min-insync: expected at least 1, and no more in-sync replicas than replicas, got %d and %d", c.Replicas, c.MinInsync)
	case c.Replicas > 1 && c.MinInsync < 2:
		return fmt.Errorf("--min-insync: expected at least 2 with %d replicas: a write that only the leader has is acknowledged, and lost with it", c.Replicas)
	case c.Retention < kafka.LeastRetention:
		return fmt.Errorf("--retention: expected at least %s: what ingesters have not read by then is lost", kafka.LeastRetention)
	case c.MaxMessage < 1<<20 || c.MaxMessage > 64<<20:
		return fmt.Errorf("--max-message-bytes: expected 1 MiB to 64 MiB, got %d", c.MaxMessage)
	}
	return nil
}

// Run makes the topic and records it.
func (c *Create) Run(ctx context.Context, k *kong.Context, environ []string, stdout io.Writer) error {
	p, err := c.open(ctx, k, environ, stdout)
	if err != nil {
		return err
	}
	plan := kafka.Plan{Topic: p.topic, Partitions: c.Partitions, Replicas: c.Replicas, MinInsync: c.MinInsync, Retention: c.Retention, MaxMessage: c.MaxMessage}
	if c.State {
		if err := kafka.CreateState(ctx, p.connection, plan); err != nil {
			return err
		}
		_, err := fmt.Fprintf(stdout, "topic %s is there\n", kafka.StateTopic(p.topic))
		return err
	}
	if last := topics.Latest(p.epochs); last != nil && !c.NoRecord {
		return fmt.Errorf("the bucket records topic %s as epoch %d already; to use another topic, make it with --no-record, and run shale kafka adopt",
			last.Topic, last.Number)
	}
	t, err := kafka.Create(ctx, p.connection, plan)
	if err != nil {
		return err
	}
	if err := kafka.CreateState(ctx, p.connection, plan); err != nil {
		return fmt.Errorf("the topic was made, and is not recorded: %w", err)
	}
	findings := kafka.Check(t)
	r := &report{Topic: t, Findings: findings}
	if err := refusal(t.Name, findings); err != nil {
		return fmt.Errorf("the topic was made, and is not recorded: %w", err)
	}
	if c.NoRecord {
		return p.print(r)
	}
	e, err := topics.Add(ctx, p.bucket, p.epochs, topics.Epoch{Topic: t.Name, ID: t.ID, Partitions: t.Partitions, Begins: make([]int64, t.Partitions)})
	if err != nil {
		return fmt.Errorf("the topic was made but not recorded; run shale kafka adopt: %w", err)
	}
	r.Epoch = e.Number
	return p.print(r)
}
