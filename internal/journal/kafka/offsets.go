package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/shaledb/shale/internal/model"
)

// Extent is what a partition holds: the offsets from Start to below End.
type Extent struct{ Start, End int64 }

// Offsets returns the extents of partitions of a topic. Only these are asked for: each question goes to the
// leader of a partition, and the leaders of others may be away.
func Offsets(ctx context.Context, c Connection, topic string, partitions ...int32) (map[int32]Extent, error) {
	cl, err := c.client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	return extents(ctx, cl, topic, partitions)
}

// Asker asks brokers where partitions end, again and again. It is safe for concurrent use.
type Asker struct{ client *kgo.Client }

// NewAsker returns an Asker. It connects with the first question.
func NewAsker(c Connection) (*Asker, error) {
	cl, err := c.client()
	if err != nil {
		return nil, err
	}
	return &Asker{cl}, nil
}

// Ends returns the offsets after the last acknowledged records of the partitions of a topic.
func (a *Asker) Ends(ctx context.Context, topic string, partitions int32) (map[int32]int64, error) {
	all := make([]int32, partitions)
	for i := range all {
		all[i] = int32(i)
	}
	found, err := offsetsAt(ctx, a.client, topic, all, latest)
	if err == nil && len(found) < len(all) {
		err = fmt.Errorf("kafka: topic %s: %w: brokers know the ends of %d of %d partitions", topic, model.ErrTransient, len(found), len(all))
	}
	return found, err
}

// Close closes the connections.
func (a *Asker) Close() { a.client.Close() }

// The times that stand for the ends of a partition.
const (
	latest   = -1
	earliest = -2
)

func extents(ctx context.Context, cl *kgo.Client, topic string, partitions []int32) (map[int32]Extent, error) {
	found := make(map[int32]Extent, len(partitions))
	for _, at := range []int64{earliest, latest} {
		offsets, err := offsetsAt(ctx, cl, topic, partitions, at)
		if err != nil {
			return nil, err
		}
		for _, p := range partitions {
			offset, ok := offsets[p]
			if !ok {
				return nil, fmt.Errorf("kafka: topic %s, partition %d: %w: its offsets are not in the response", topic, p, model.ErrTransient)
			}
			e := found[p]
			if at == earliest {
				e.Start = offset
			} else {
				e.End = offset
			}
			found[p] = e
		}
	}
	return found, nil
}

func offsetsAt(ctx context.Context, cl *kgo.Client, topic string, partitions []int32, at int64) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	for _, p := range partitions {
		one := kmsg.NewListOffsetsRequestTopicPartition()
		one.Partition, one.Timestamp, one.CurrentLeaderEpoch = p, at, -1
		t.Partitions = append(t.Partitions, one)
	}
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return nil, fmt.Errorf("kafka: topic %s: asking for offsets: %w", topic, classified(err))
	}
	found := make(map[int32]int64, len(partitions))
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return nil, fmt.Errorf("kafka: topic %s, partition %d: asking for its offsets: %w", topic, p.Partition, classified(err))
			}
			found[p.Partition] = p.Offset
		}
	}
	return found, nil
}

// LeaderEnd returns the offset after the last record that a leader of a partition, or one before it, has
// taken; negative: brokers know nothing of that leader.
func LeaderEnd(ctx context.Context, c Connection, topic string, partition, epoch int32) (int64, error) {
	cl, err := c.client()
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	return epochEnd(ctx, cl, topic, partition, epoch, -1)
}

// epochEnd returns the offset after the last record that a leader of a partition, or one before it, has
// taken; negative: brokers know nothing of that leader. now is the present leader, which alone answers; -1:
// whichever it is.
func epochEnd(ctx context.Context, cl *kgo.Client, topic string, partition, epoch, now int32) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.ReplicaID = -1
	one := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	one.Partition, one.CurrentLeaderEpoch, one.LeaderEpoch = partition, now, epoch
	req.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{one}}}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return 0, fmt.Errorf("kafka: topic %s, partition %d: asking for the end of leader %d: %w", topic, partition, epoch, classified(err))
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.Partition != partition {
				continue
			}
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return 0, fmt.Errorf("kafka: topic %s, partition %d: asking for the end of leader %d: %w", topic, partition, epoch, classified(err))
			}
			return p.EndOffset, nil
		}
	}
	return 0, fmt.Errorf("kafka: topic %s, partition %d: %w: the end of leader %d is not in the response", topic, partition, model.ErrTransient, epoch)
}
