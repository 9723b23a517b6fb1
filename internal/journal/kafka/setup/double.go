package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/store/topics"
)

// Double goes on with a topic of twice as many partitions.
type Double struct {
	flags `embed:""`
	To    string `arg:"" name:"topic" help:"Name of the new topic. No epoch may have had it."`
}

// Help teaches the command by examples.
func (*Double) Help() string {
	return `Go on with twice as many partitions, in a new topic, while everything runs:

    shale kafka double shale-32 --config shale.yaml

The new topic has the replicas, the retention and the largest message of the old one. The old topic takes no more records
from then on. Gateways notice, and send what it refuses to the new one. Ingesters take what it has to the bucket, and then
begin with the new partitions. Queries for the newest rows wait for that, or get 503, for some seconds.

If the command fails, or is killed, run it again: gateways may refuse writes until it has succeeded. The old topic may be
deleted once this says so:

    shale kafka check --config shale.yaml --kafka.topic shale-32`
}

// Run makes the topic and begins its epoch.
func (c *Double) Run(ctx context.Context, k *kong.Context, environ []string, stdout io.Writer) error {
	p, err := c.open(ctx, k, environ, stdout)
	if err != nil {
		return err
	}
	last := topics.Latest(p.epochs)
	if last == nil {
		return errors.New("the bucket records no topic; shale kafka create makes one")
	}
	if n := len(p.epochs); n > 1 && last.Topic == c.To && last.Partitions == 2*p.epochs[n-2].Partitions {
		t, err := kafka.Describe(ctx, p.connection, c.To) // an earlier run has done it, and its output may be lost
		if err != nil {
			return err
		}
		return p.print(&report{Topic: t, Findings: kafka.Check(t), Epoch: last.Number})
	}
	if last.Topic == c.To && len(p.epochs) > 1 {
		return fmt.Errorf("topic %s is that of epoch %d already; there is nothing to do", c.To, last.Number)
	}
	if err := topics.NeedVersion(p.version, topics.VersionLeaders, follows); err != nil {
		return err
	}
	before, err := kafka.Describe(ctx, p.connection, last.Topic)
	if err == nil && before.ID != last.ID {
		err = fmt.Errorf("its id is %s, and the bucket records %s", before.ID, last.ID)
	}
	if err != nil {
		return fmt.Errorf("topic %s of epoch %d: %w; after a loss, shale kafka adopt begins with another topic", last.Topic, last.Number, err)
	}
	if refused := kafka.Refused(kafka.Check(before)); len(refused) > 0 && !before.Sealed() {
		return refusal(last.Topic, refused)
	}
	t, err := c.topic(ctx, p, last, before)
	if err != nil {
		return err
	}
	r := &report{Topic: t, Findings: kafka.Check(t)}
	if err := refusal(t.Name, r.Findings); err != nil {
		return err
	}
	return p.begin(ctx, r, topics.Epoch{Topic: t.Name, ID: t.ID, Partitions: t.Partitions, Begins: make([]int64, t.Partitions)})
}

// topic makes the new topic, unless an earlier run has.
func (c *Double) topic(ctx context.Context, p *place, last *topics.Epoch, before *kafka.Topic) (*kafka.Topic, error) {
	plan := kafka.Plan{Topic: c.To, Partitions: 2 * last.Partitions, Replicas: int16(before.Replicas), MinInsync: 1, Retention: 48 * time.Hour, MaxMessage: 16 << 20}
	if n, err := strconv.Atoi(before.Settings["min.insync.replicas"]); err == nil {
		plan.MinInsync = n
	}
	if n, err := strconv.ParseInt(before.Settings["retention.ms"], 10, 64); err == nil {
		plan.Retention = time.Duration(n) * time.Millisecond
		if n < 0 || plan.Retention/time.Millisecond != time.Duration(n) {
			plan.Retention = -time.Millisecond // it has no end
		}
	}
	if n, err := strconv.ParseInt(before.Settings["max.message.bytes"], 10, 64); err == nil && !before.Sealed() {
		plan.MaxMessage = n
	}
	if plan.Partitions > topics.MaxPartitions {
		return nil, fmt.Errorf("topic %s has %d partitions; no topic may have more than %d", last.Topic, last.Partitions, topics.MaxPartitions)
	}
	t, err := kafka.Describe(ctx, p.connection, c.To)
	if errors.Is(err, kafka.ErrNoTopic) {
		t, err = kafka.Create(ctx, p.connection, plan)
	}
	if err == nil {
		err = kafka.CreateState(ctx, p.connection, plan)
	}
	if err != nil {
		return nil, err
	}
	if e := topics.OfID(p.epochs, t.ID); e != nil {
		return nil, fmt.Errorf("topic %s is that of epoch %d: a topic is used once; name another one", t.Name, e.Number)
	}
	if t.Partitions != plan.Partitions {
		return nil, fmt.Errorf("topic %s exists and has %s, not %d; name another one", t.Name, english.Plural(int(t.Partitions), "partition", ""), plan.Partitions)
	}
	if err := p.empty(ctx, t); err != nil {
		return nil, err
	}
	return t, nil
}

// empty returns an error if a topic has, or had, records.
func (p *place) empty(ctx context.Context, t *kafka.Topic) error {
	partitions := make([]int32, t.Partitions)
	for i := range partitions {
		partitions[i] = int32(i)
	}
	has, err := kafka.Offsets(ctx, p.connection, t.Name, partitions...)
	if err != nil {
		return err
	}
	for n, x := range has {
		if x.End > 0 {
			return fmt.Errorf("topic %s exists and has records in partition %d; name another one, or see shale kafka adopt --help", t.Name, n)
		}
	}
	return nil
}
