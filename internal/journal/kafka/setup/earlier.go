package setup

import (
	"context"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/topics"
)

// shipped returns the first offset of each partition of an epoch that the bucket does not have, and which
// partitions are closed.
func (p *place) shipped(ctx context.Context, e *topics.Epoch) (first []int64, closed []bool, err error) {
	records, err := catalog.ReadStored(ctx, p.bucket)
	if err != nil {
		return nil, nil, err
	}
	covered, ended := map[string]uint64{}, map[string]bool{}
	for i := range records {
		for _, v := range records[i].Covered {
			if v.Epoch == e.Number {
				covered[v.Node] = max(covered[v.Node], v.To)
				ended[v.Node] = ended[v.Node] || v.Closed
			}
		}
	}
	first, closed = make([]int64, e.Partitions), make([]bool, e.Partitions)
	for n := range e.Partitions {
		first[n], closed[n] = max(e.Begins[n], topics.Offset(covered[topics.Node(n)])), ended[topics.Node(n)]
	}
	return first, closed, nil
}

// earlier adds a finding for each epoch before the last one whose topic has, or had, records that the bucket
// does not have. An epoch that an operator has given up is left out.
func (p *place) earlier(ctx context.Context, r *report) error {
	for i := range len(p.epochs) - 1 {
		e := &p.epochs[i]
		if p.epochs[i+1].BeforeLost {
			continue
		}
		f, err := p.leftOf(ctx, e)
		if err != nil {
			return err
		}
		if f != nil {
			f.Setting, f.Value = fmt.Sprint("epoch ", e.Number), e.Topic
			r.Findings = append(r.Findings, *f)
		}
	}
	return nil
}

// leftOf returns what an earlier epoch has that the bucket has not, or nil once its topic may be deleted.
func (p *place) leftOf(ctx context.Context, e *topics.Epoch) (*kafka.Finding, error) {
	shipped, closed, err := p.shipped(ctx, e)
	if err != nil {
		return nil, err
	}
	done := true
	for n := range e.Partitions {
		end, ends := topics.End(p.epochs, e.Number, n)
		done = done && ends && shipped[n] >= end
	}
	t, err := kafka.Describe(ctx, p.connection, e.Topic)
	if errors.Is(err, kafka.ErrNoTopic) || err == nil && t.ID != e.ID {
		if done {
			return nil, nil
		}
		return &kafka.Finding{Refused: true, Why: "the topic is gone, and the bucket does not say that it had all of its records: what was missing is lost"}, nil
	}
	if err != nil {
		return nil, err
	}
	partitions := make([]int32, e.Partitions)
	for n := range partitions {
		partitions[n] = int32(n)
	}
	has, err := kafka.Offsets(ctx, p.connection, e.Topic, partitions...)
	if err != nil {
		return nil, err
	}
	left := int64(0)
	for _, n := range partitions {
		end, ends := topics.End(p.epochs, e.Number, n)
		switch {
		case shipped[n] < has[n].Start:
			return &kafka.Finding{Refused: true, Why: fmt.Sprintf(
				"partition %d: Kafka has deleted the records with offsets %d to %d, which are not in the bucket: they are lost", n, shipped[n], has[n].Start-1)}, nil
		case closed[n] && has[n].End > shipped[n]:
			return &kafka.Finding{Refused: true, Why: fmt.Sprintf(
				"partition %d: it was closed at offset %d, and has taken records up to offset %d since, as after its max.message.bytes was raised: they are not read", n, shipped[n], has[n].End)}, nil
		case ends && has[n].End < end && shipped[n] < end:
			return &kafka.Finding{Refused: true, Why: fmt.Sprintf("partition %d: brokers have lost the records with offsets %d to %d, which are not in the bucket", n, max(shipped[n], has[n].End), end-1)}, nil
		}
		left += max(0, has[n].End-shipped[n])
	}
	switch {
	case left > 0:
		return &kafka.Finding{Why: fmt.Sprintf("the bucket still lacks %d %s, and the partitions that follow do not begin before it has all; the topic must stay", left, english.PluralWord(int(left), "record", ""))}, nil
	case done:
		return &kafka.Finding{Note: true, Why: "all of its records are in the bucket, and it takes no more: the topic and its state topic may be deleted"}, nil
	}
	return nil, nil
}
