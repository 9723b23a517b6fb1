package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Retention is how long a topic keeps records: in time, and in bytes of each partition. Zero: there is no
// such bound.
type Retention struct {
	Time  time.Duration
	Bytes int64
}

// Use is how much of a retention the partition uses that is nearest to losing records that are not read.
type Use struct {
	// Share is 1 when Kafka deletes the oldest of these records; 0: there are none.
	Share     float64
	Topic     string
	Partition int32
	// Setting is that of the topic which counts, and Value is its value.
	Setting, Value string
}

// Uses are those of the two bounds of a retention; nil: Kafka has not said it.
type Uses struct {
	Time, Bytes *Use
}

// Retention asks for the retention of a topic.
func (a *Asker) Retention(ctx context.Context, topic string) (r Retention, err error) {
	t, err := describe(ctx, a.client, topic)
	if err != nil {
		return r, err
	}
	if ms, ok := t.number(retentionMS); ok && ms > 0 {
		r.Time = time.Duration(ms) * time.Millisecond
	}
	if bytes, ok := t.number(retentionBytes); ok && bytes > 0 {
		r.Bytes = bytes
	}
	return r, nil
}

// Use asks how much of a retention is used by what lies after the given offsets of partitions. The clocks of
// brokers and of this process are taken for equal. now is the time of this process. With an error, one of the
// uses may be known.
func (a *Asker) Use(ctx context.Context, topic string, r Retention, from map[int32]int64, now time.Time) (Uses, error) {
	all := make([]int32, 0, len(from))
	for p := range from {
		all = append(all, p)
	}
	if len(all) == 0 {
		return Uses{&Use{}, &Use{}}, nil
	}
	found, err := extents(ctx, a.client, topic, all)
	if err != nil {
		return Uses{}, err
	}
	waiting := all[:0]
	for _, p := range all {
		if max(from[p], found[p].Start) < found[p].End {
			waiting = append(waiting, p)
		}
	}
	if len(waiting) == 0 {
		return Uses{&Use{}, &Use{}}, nil
	}
	ofTime, ofBytes := Use{}, Use{}
	uses := Uses{&ofTime, &ofBytes}
	var failedTime, failedBytes error
	if r.Time > 0 {
		if ofTime, failedTime = a.useOfTime(ctx, topic, r, from, found, waiting, now); failedTime != nil {
			uses.Time = nil
		}
	}
	if r.Bytes > 0 {
		if ofBytes, failedBytes = a.useOfBytes(ctx, topic, r, from, found, waiting); failedBytes != nil {
			uses.Bytes = nil
		}
	}
	return uses, errors.Join(failedTime, failedBytes)
}

// bisections is how often a share is halved: it is known to 1/64.
const bisections = 6

// useOfTime finds the age of the oldest record that waits. Brokers say which offsets are older than a time,
// and nothing about one record.
func (a *Asker) useOfTime(ctx context.Context, topic string, r Retention, from map[int32]int64, found map[int32]Extent, waiting []int32, now time.Time) (Use, error) {
	use := Use{Setting: retentionMS, Value: fmt.Sprintf("%d (%s)", r.Time.Milliseconds(), r.Time), Partition: waiting[0]}
	for step, span := 0, 0.5; step < bisections; step, span = step+1, span/2 {
		at := now.Add(-time.Duration((use.Share + span) * float64(r.Time)))
		first, err := offsetsAt(ctx, a.client, topic, waiting, at.UnixMilli())
		if err != nil {
			return Use{}, err
		}
		for _, p := range waiting {
			oldest := max(from[p], found[p].Start)
			if offset, ok := first[p]; ok && (offset < 0 || offset > oldest) { // -1: all are older
				use.Share, use.Partition = use.Share+span, p
				break
			}
		}
	}
	return use, nil
}

// useOfBytes finds the bytes of what waits, as if all records of a partition were of one size.
func (a *Asker) useOfBytes(ctx context.Context, topic string, r Retention, from map[int32]int64, found map[int32]Extent, waiting []int32) (Use, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	set := kadm.TopicsSet{}
	set.Add(topic, waiting...)
	described, err := kadm.NewClient(a.client).DescribeAllLogDirs(ctx, set)
	if err != nil {
		return Use{}, fmt.Errorf("kafka: topic %s: asking for the sizes of partitions: %w", topic, classified(err))
	}
	size := map[int32]int64{} // of the largest replica
	described.Each(func(d kadm.DescribedLogDir) {
		for p, of := range d.Topics[topic] {
			size[p] = max(size[p], of.Size)
		}
	})
	use := Use{Setting: retentionBytes, Value: fmt.Sprint(r.Bytes)}
	for _, p := range waiting {
		e := found[p]
		part := float64(e.End-max(from[p], e.Start)) / float64(e.End-e.Start)
		if share := part * float64(size[p]) / float64(r.Bytes); share > use.Share {
			use.Share, use.Partition = share, p
		}
	}
	return use, nil
}
