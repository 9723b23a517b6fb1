package setup

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/store/topics"
)

// Check looks at a topic, and changes nothing.
type Check struct {
	flags `embed:""`
}

// Help teaches the command by examples.
func (*Check) Help() string {
	return `Check the topic that the bucket records, with the settings of the server:

    shale kafka check --config shale.yaml

The report lists for each partition the offsets that Kafka has, and up to where the bucket has them. The exit code is 1 if the
topic is refused: because of a setting, because it is not the recorded one, or because Kafka has deleted what the
bucket does not have. Warnings do not count. For scripts:

    shale kafka check --config shale.yaml --json | jq '.findings[] | select(.refused)'`
}

// extent is the state of a partition.
type extent struct {
	Partition int32 `json:"partition"`
	// Start is the first offset that Kafka has, and End the one after the last.
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	// Shipped is the first offset that the bucket does not have.
	Shipped int64 `json:"shipped"`
}

func extentRows(all []extent) [][]string {
	rows := [][]string{{"partition", "first offset", "end", "in the bucket up to", "not in the bucket"}}
	for _, e := range all {
		rows = append(rows, []string{fmt.Sprint(e.Partition), fmt.Sprint(e.Start), fmt.Sprint(e.End), fmt.Sprint(e.Shipped), fmt.Sprint(max(0, e.End-e.Shipped))})
	}
	return rows
}

// Run checks the topic.
func (c *Check) Run(ctx context.Context, k *kong.Context, environ []string, stdout io.Writer) error {
	p, err := c.open(ctx, k, environ, stdout)
	if err != nil {
		return err
	}
	t, err := kafka.Describe(ctx, p.connection, p.topic)
	if errors.Is(err, kafka.ErrNoTopic) {
		return fmt.Errorf("%w; shale kafka create makes it", err)
	}
	if err != nil {
		return err
	}
	r := &report{Topic: t, Findings: kafka.Check(t)}
	of, err := kafka.Describe(ctx, p.connection, kafka.StateTopic(p.topic))
	switch {
	case errors.Is(err, kafka.ErrNoTopic):
		r.Findings = append(r.Findings, kafka.Finding{Setting: "state topic", Value: "none", Why: "gateways do not hear of partitions that lack labels; shale kafka create --state makes it"})
	case err != nil:
		return err
	default:
		r.Findings = append(r.Findings, kafka.CheckState(of)...)
	}
	e := topics.Latest(p.epochs)
	if f := recorded(t, e); f != nil {
		r.Findings = append(r.Findings, *f)
	}
	if e != nil && e.ID == t.ID {
		r.Epoch = e.Number
		if len(t.Leaderless) == 0 {
			if err := p.extents(ctx, r, e); err != nil {
				return err
			}
		}
	}
	if err := p.earlier(ctx, r); err != nil {
		return err
	}
	if err := p.print(r); err != nil {
		return err
	}
	return refusal(t.Name, r.Findings)
}

// recorded judges whether the topic is the one that the bucket records.
func recorded(t *kafka.Topic, e *topics.Epoch) *kafka.Finding {
	switch {
	case e == nil:
		return &kafka.Finding{Setting: "epoch", Value: "none", Refused: true, Why: "the bucket records no topic; shale kafka adopt records this one"}
	case e.Topic != t.Name:
		return &kafka.Finding{Setting: "kafka.topic", Value: t.Name, Refused: true,
			Why: fmt.Sprintf("the bucket records topic %s as epoch %d; shale kafka adopt begins to use another one", e.Topic, e.Number)}
	case e.ID != t.ID:
		return &kafka.Finding{Setting: "id", Value: t.ID, Refused: true,
			Why: fmt.Sprintf("the bucket records %s: the topic was deleted and made again. What was not in the bucket is lost, and shale kafka adopt begins with the new one", e.ID)}
	case e.Partitions != t.Partitions:
		return &kafka.Finding{Setting: "partitions", Value: fmt.Sprint(t.Partitions), Refused: t.Partitions < e.Partitions,
			Why: fmt.Sprintf("the bucket records %d, and others are not used; to double them, make another topic and run shale kafka adopt", e.Partitions)}
	}
	return nil
}

// extents adds the state of each partition, and a finding for each whose records were deleted too early.
func (p *place) extents(ctx context.Context, r *report, e *topics.Epoch) error {
	partitions := make([]int32, e.Partitions)
	for i := range partitions {
		partitions[i] = int32(i)
	}
	has, err := kafka.Offsets(ctx, p.connection, e.Topic, partitions...)
	if err != nil {
		return err
	}
	shipped, _, err := p.shipped(ctx, e)
	if err != nil {
		return err
	}
	for _, n := range partitions {
		x := extent{n, has[n].Start, has[n].End, shipped[n]}
		r.Extents = append(r.Extents, x)
		if x.Shipped > x.End {
			r.Findings = append(r.Findings, kafka.Finding{Setting: "partition", Value: fmt.Sprint(n), Refused: true,
				Why: fmt.Sprintf("it ends before offset %d, and the bucket has records up to %d: brokers have lost records, and what is written now takes the offsets of those, and would not be read",
					x.End, x.Shipped)})
		}
		if x.Shipped < x.Start {
			r.Findings = append(r.Findings, kafka.Finding{Setting: "partition", Value: fmt.Sprint(n), Refused: true,
				Why: fmt.Sprintf("Kafka has deleted the records with offsets %d to %d, which are not in the bucket: they are lost", x.Shipped, x.Start-1)})
		}
	}
	return nil
}
