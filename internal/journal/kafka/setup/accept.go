package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/topics"
)

// AcceptLoss lets a partition go on without records.
type AcceptLoss struct {
	flags  `embed:""`
	Lost   string `arg:"" name:"partition:from-to" help:"Partition and offsets, as /ready of the ingester names them, such as 3:100-250, or 3:100 for one record."`
	DryRun bool   `help:"Say what would be given up, and record nothing."`
	Force  bool   `help:"Give up a record that can be read, such as one with rows whose labels are lost."`
}

// Help teaches the command by examples.
func (*AcceptLoss) Help() string {
	return `Go on with a partition that has stopped, without the records that stop it. Their rows are lost for good.

After retention has deleted records that were not in the bucket, name all of them:

    shale kafka accept-loss 3:100-250 --config shale.yaml --dry-run
    shale kafka accept-loss 3:100-250 --config shale.yaml

After brokers have lost records that the bucket has, as in a power cut, others have their offsets. These are given up:

    shale kafka accept-loss 3:90-120 --config shale.yaml

Of records that Kafka has, one is given up at a time, such as one that cannot be read:

    shale kafka accept-loss 3:4711 --config shale.yaml

A topic that another one has followed is named. If it is gone too early, all of a partition up to its end is given up:

    shale kafka accept-loss 3:4711-4900 --config shale.yaml --kafka.topic shale

The bucket records what was given up. The ingester goes on within a minute.`
}

// loss is what is given up.
type loss struct {
	Topic     string `json:"topic"`
	Epoch     uint64 `json:"epoch"`
	Partition int32  `json:"partition"`
	// From and To are the first and the last offset.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Recorded says that the bucket has it.
	Recorded bool `json:"recorded"`
}

// parseLoss reads a partition and offsets.
func parseLoss(text string) (l loss, err error) {
	partition, offsets, ok := strings.Cut(text, ":")
	from, to, isRange := strings.Cut(offsets, "-")
	if !isRange {
		to = from
	}
	p, err := strconv.ParseInt(partition, 10, 32)
	l.Partition = int32(p)
	if err == nil {
		l.From, err = strconv.ParseInt(from, 10, 62)
	}
	if err == nil {
		l.To, err = strconv.ParseInt(to, 10, 62)
	}
	if !ok || err != nil || l.Partition < 0 || l.From < 0 || l.To < l.From {
		return l, usage("%q is not a partition with offsets; write 3:100-250, or 3:100 for one record", text)
	}
	return l, nil
}

// Run records that the records are given up.
func (c *AcceptLoss) Run(ctx context.Context, k *kong.Context, environ []string, stdout io.Writer) error {
	l, err := parseLoss(c.Lost)
	if err != nil {
		return err
	}
	p, err := c.open(ctx, k, environ, stdout)
	if err != nil {
		return err
	}
	t, err := kafka.Describe(ctx, p.connection, p.topic)
	e := p.named()
	end, ended := topics.End(p.epochs, e.Number, l.Partition)
	gone := ended && (errors.Is(err, kafka.ErrNoTopic) || err == nil && t.ID != e.ID)
	if err != nil && !gone {
		return err
	}
	if !gone {
		if f := recorded(t, e); f != nil && f.Refused {
			return refusal(t.Name, []kafka.Finding{*f})
		}
	}
	if l.Topic, l.Epoch = e.Topic, e.Number; l.Partition >= e.Partitions {
		return usage("topic %s has %s, 0 to %d", e.Topic, english.Plural(int(e.Partitions), "partition", ""), e.Partitions-1)
	}
	has := map[int32]kafka.Extent{}
	if !gone {
		if has, err = kafka.Offsets(ctx, p.connection, e.Topic, l.Partition); err != nil {
			return err
		}
	}
	cat, err := catalog.Open(ctx, p.bucket, catalog.Options{})
	if err != nil {
		return err
	}
	at := cat.Progress(topics.Node(l.Partition), e.Number)
	if at.Closed {
		return fmt.Errorf("partition %d of topic %s is closed: the bucket has all of its records", l.Partition, e.Topic)
	}
	if x := has[l.Partition]; ended && x.End < end && topics.Offset(at.To) >= x.End {
		has[l.Partition] = kafka.Extent{Start: end, End: end} // the rest up to its end is lost
		at.Leaders = 0
	}
	if taken, err := l.overwritten(ctx, p, e, &at, has[l.Partition]); err != nil || taken {
		if err == nil {
			err = topics.NeedVersion(p.version, topics.VersionLeaders, "to give up records that have taken the offsets of others")
		}
		if err == nil && !c.DryRun {
			err = l.overwrite(ctx, p, cat, e, at)
		}
		if err != nil {
			return err
		}
		return l.print(p)
	}
	if err := l.check(has[l.Partition], max(topics.Offset(at.To), e.Begins[l.Partition])); err != nil {
		return err
	}
	if l.From >= has[l.Partition].Start && !c.Force {
		switch err := readable(ctx, p.connection, e, l.Partition, l.From); {
		case err == nil:
			return fmt.Errorf("partition %d: the record with offset %d can be read; if it is what stops the partition, add --force", l.Partition, l.From)
		case !errors.Is(err, model.ErrCorrupt):
			return err
		}
	}
	if !c.DryRun {
		if err := l.record(ctx, cat, at, has[l.Partition]); err != nil {
			return err
		}
	}
	return l.print(p)
}

// check refuses to give up records that need not be.
func (l *loss) check(has kafka.Extent, shipped int64) error {
	switch {
	case l.From != shipped:
		return fmt.Errorf("partition %d is in the bucket up to offset %d: what is given up begins there, not at %d", l.Partition, shipped, l.From)
	case l.To >= has.End:
		return fmt.Errorf("partition %d ends before offset %d: there is no record %d yet", l.Partition, has.End, l.To)
	case l.From < has.Start && l.To != has.Start-1:
		return fmt.Errorf("partition %d: Kafka lacks the records from offset %d to %d; to give up exactly these, use %d:%d-%d", l.Partition, l.From, has.Start-1, l.Partition, l.From, has.Start-1)
	case l.From >= has.Start && l.To != l.From:
		return fmt.Errorf("partition %d: Kafka has the record with offset %d and those after it; existing records are given up one at a time, with %d:%d",
			l.Partition, l.From, l.Partition, l.From)
	}
	return nil
}

// errReadable says that a record was read.
var errReadable = errors.New("the record can be read")

// named returns the epoch whose topic has the name of the setting kafka.topic, or else the last one.
func (p *place) named() *topics.Epoch {
	for i := len(p.epochs) - 1; i >= 0; i-- {
		if p.epochs[i].Topic == p.topic {
			return &p.epochs[i]
		}
	}
	return topics.Latest(p.epochs)
}

// readable returns nil if a record can be read, and an error of class corrupt if it cannot.
func readable(ctx context.Context, c kafka.Connection, e *topics.Epoch, partition int32, offset int64) error {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	r, err := kafka.OpenReader(ctx, kafka.ReaderOptions{Connection: c, Topic: e.Topic, TopicID: e.ID, Partition: partition, From: offset})
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		switch err := r.Read(ctx, func(*kafka.Record) error { return errReadable }); {
		case errors.Is(err, errReadable):
			return nil
		case err != nil && !errors.Is(err, model.ErrTransient), ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		}
	}
}

// readTime bounds the reading of one record.
const readTime = 30 * time.Second

// record writes a ship without rows that covers the records.
func (l *loss) record(ctx context.Context, cat *catalog.Catalog, at catalog.Progress, has kafka.Extent) error {
	why := "an operator has given the record up"
	if l.From < has.Start {
		why = "Kafka deleted the records before they were in the bucket"
	}
	from, to := topics.Sequence(l.From), topics.Sequence(l.To)
	s := catalog.Ship{
		Covered: []catalog.Coverage{{Node: at.Node, Epoch: at.Epoch, From: at.To + 1, To: to}},
		Skipped: []catalog.Skip{{Node: at.Node, Epoch: at.Epoch, From: from, To: to, Why: why}},
	}
	_, err := cat.Ship(ctx, s, nil)
	if errors.Is(err, catalog.ErrStale) {
		return fmt.Errorf("an ingester has shipped the partition just now; look at it again: %w", err)
	}
	l.Recorded = err == nil
	return err
}

func (l *loss) print(p *place) error {
	if p.json {
		e := json.NewEncoder(p.stdout)
		e.SetIndent("", "  ")
		return e.Encode(l)
	}
	what := "would give up"
	if l.Recorded {
		what = "gave up"
	}
	_, err := fmt.Fprintf(p.stdout, "topic %s, partition %d: %s %d %s, offsets %d to %d; it goes on at %d\n",
		l.Topic, l.Partition, what, l.To-l.From+1, english.PluralWord(int(l.To-l.From+1), "record", ""), l.From, l.To, l.To+1)
	return err
}
