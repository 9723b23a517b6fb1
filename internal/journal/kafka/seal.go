package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/shaledb/shale/internal/journal"
	"github.com/shaledb/shale/internal/model"
)

// sealBytes is the max.message.bytes of a topic that takes no more records: none is as small. Brokers compare
// the size first, so that they refuse repeated requests, too. Kafka has no other switch that needs no access
// lists.
const sealBytes = 1

// Sealed reports whether the topic takes no more records.
func (t *Topic) Sealed() bool {
	n, ok := t.number(maxMessageBytes)
	return ok && n <= sealBytes
}

// ErrSealed says that a topic takes no more records: another one takes writes, or is about to. It is joined
// by class transient.
var ErrSealed = errors.New("the topic takes no more records, because another one is to take writes")

const (
	// sealWithin bounds the wait until all brokers refuse records and all replicas have the last ones.
	sealWithin = time.Minute
	sealEvery  = 100 * time.Millisecond
	// sealQuiet is for how long the ends must have stayed the same. A broker compares the size of a record
	// before it takes the lock of the log. So a record that it has compared before may still come, if other
	// records or a disk hold it up there, and no answer tells. Gateways wait for up to 10 s meanwhile.
	sealQuiet = 3 * time.Second
	// probeWithin bounds a record that must be refused.
	probeWithin = 10 * time.Second
)

// Seal makes a topic refuse records for good, whoever sends them and however late. It returns the offset at
// which each partition ends: all records before it are committed, and none has come for a while. A record
// that a broker held up for longer may still come: see [SealedEnd]. Seal may be repeated.
func Seal(ctx context.Context, c Connection, topic, id string, partitions int32) (ends []int64, err error) {
	// A record in the probe's way could be an earlier probe whose response was lost: it has no number.
	cl, err := c.client(kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RecordDeliveryTimeout(probeWithin), kgo.ProducerLinger(0), kgo.MetadataMinAge(sealEvery))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	t, err := describe(ctx, cl, topic)
	if err == nil {
		err = t.is(id, partitions)
	}
	if err == nil && !t.Sealed() {
		if err = canSeal(ctx, cl, topic); err == nil {
			err = setSeal(ctx, cl, topic)
		}
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, sealWithin)
	defer cancel()
	since := time.Now() // when the ends were the same first
	for {
		var now []int64
		now, err = sealedEnds(ctx, cl, topic, id, partitions)
		switch {
		case errors.Is(err, model.ErrInvalid):
			return nil, err
		case err != nil:
			ends = nil
		case !slices.Equal(now, ends):
			ends, since = now, time.Now()
			err = fmt.Errorf("kafka: topic %s: %w: its ends have moved lately", topic, model.ErrTransient)
		case time.Since(since) >= sealQuiet:
			return ends, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("kafka: topic %s: %w: it refuses records, and where it ends is not known after %s; repeat the command: %w", topic, model.ErrTransient, sealWithin, err)
		case <-time.After(sealEvery):
		}
	}
}

// canSeal tries what is needed once the topic is sealed, when writes wait: all brokers answer, and records
// may be sent. The one that is sent has no rows.
func canSeal(ctx context.Context, cl *kgo.Client, topic string) error {
	m, err := kadm.NewClient(cl).BrokerMetadata(ctx)
	if err != nil {
		return fmt.Errorf("kafka: %w", classified(err))
	}
	for _, b := range m.Brokers {
		if _, err := messageBytesAt(ctx, cl, b.NodeID, topic); err != nil {
			return fmt.Errorf("nothing is changed: %w", err)
		}
	}
	for _, r := range cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: probeValue()}) {
		if r.Err != nil {
			return fmt.Errorf("nothing is changed: kafka: topic %s: sending a record without rows, for which the command needs the right to write: %w", topic, classified(r.Err))
		}
	}
	return nil
}

func probeValue() []byte {
	return journal.EncodeBatch(nil, &model.Batch{Tenant: model.DefaultTenant, Signal: model.Metrics})
}

func setSeal(ctx context.Context, cl *kgo.Client, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	value := strconv.Itoa(sealBytes)
	all, err := kadm.NewClient(cl).AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: maxMessageBytes, Value: &value}}, topic)
	if err == nil {
		var one kadm.AlterConfigsResponse
		if one, err = all.On(topic, nil); err == nil {
			err = one.Err
		}
	}
	if err != nil {
		return fmt.Errorf("kafka: topic %s: making it refuse records (%s = %d), which may also be done by Kafka's tools: %w", topic, maxMessageBytes, sealBytes, classified(err))
	}
	return nil
}

// sealedEnds returns where the partitions of a topic end, or an error if further records may follow. The
// order of its steps is the proof, except for records that a broker holds up: see [sealQuiet].
func sealedEnds(ctx context.Context, cl *kgo.Client, topic, id string, partitions int32) ([]int64, error) {
	// Whichever broker leads a partition later has the setting: it does not lead before it is up to date.
	m, err := kadm.NewClient(cl).Metadata(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", classified(err))
	}
	d := m.Topics[topic]
	if d.Err != nil || idText(d.ID) != id || len(d.Partitions) < int(partitions) {
		return nil, &TopicError{topic, fmt.Sprintf("it is not the recorded one with the id %s any more: %v", id, d.Err)}
	}
	for _, b := range m.Brokers {
		if err := sealedAt(ctx, cl, b.NodeID, topic); err != nil {
			return nil, err
		}
	}
	// A broker knows of a setting shortly before it heeds it. So each leader must have refused a record.
	if err := probe(ctx, cl, topic, partitions); err != nil {
		return nil, err
	}
	ends := make([]int64, partitions)
	for p := range ends {
		if ends[p], err = committedEnd(ctx, cl, topic, int32(p), d.Partitions[int32(p)].LeaderEpoch); err != nil {
			return nil, err
		}
	}
	return ends, nil
}

// committedEnd returns where the log of a partition's leader ends, or an error unless all replicas have it.
func committedEnd(ctx context.Context, cl *kgo.Client, topic string, partition, leader int32) (int64, error) {
	// This is the end of the leader's log, with records that other replicas do not have yet. Another leader
	// than that of the metadata refuses the question.
	end, err := epochEnd(ctx, cl, topic, partition, leader, leader)
	if err != nil {
		return 0, err
	}
	committed, err := offsetsAt(ctx, cl, topic, []int32{partition}, latest)
	if err != nil {
		return 0, err
	}
	if committed[partition] != end {
		return 0, fmt.Errorf("kafka: topic %s, partition %d: %w: replicas have records up to offset %d, and the leader up to %d", topic, partition, model.ErrTransient, committed[partition], end)
	}
	return end, nil
}

// SealedEnd returns where a partition of a sealed topic ends now. It is an error of class transient if the
// topic takes records again, and [ErrNoTopic] if it is gone or was made again. If leader is not nil, it is
// the number of the leader that had taken the record before from, and a [GapError] says that brokers have
// lost records before from and taken others in their place.
func SealedEnd(ctx context.Context, c Connection, topic, id string, partition int32, from int64, leader *int32) (int64, error) {
	cl, err := c.client(kgo.MetadataMinAge(sealEvery))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	t, err := describe(ctx, cl, topic)
	switch {
	case err != nil:
		return 0, err
	case t.ID != id:
		return 0, fmt.Errorf("kafka: topic %s: %w: %w with the id %s, it was made again", topic, model.ErrInvalid, ErrNoTopic, id)
	case !t.Sealed():
		return 0, fmt.Errorf("kafka: topic %s: %w: another topic has followed it, and it takes records again. Somebody has changed %s, which must stay %d: set it again", topic, model.ErrTransient, maxMessageBytes, sealBytes)
	}
	m, err := kadm.NewClient(cl).Metadata(ctx, topic)
	if err != nil {
		return 0, fmt.Errorf("kafka: %w", classified(err))
	}
	end, err := committedEnd(ctx, cl, topic, partition, m.Topics[topic].Partitions[partition].LeaderEpoch)
	if err != nil || end < from || leader == nil {
		return end, err
	}
	r := Reader{o: ReaderOptions{Topic: topic, Partition: partition, FromEpoch: leader}, client: cl, next: from}
	return end, r.kept(ctx)
}

// sealedAt returns an error unless a broker knows that a topic is sealed.
func sealedAt(ctx context.Context, cl *kgo.Client, broker int32, topic string) error {
	value, err := messageBytesAt(ctx, cl, broker, topic)
	if err == nil && value != strconv.Itoa(sealBytes) {
		err = fmt.Errorf("kafka: topic %s: %w: broker %d does not know yet that it is to refuse records", topic, model.ErrTransient, broker)
	}
	return err
}

// messageBytesAt asks a broker what it knows of the setting that seals a topic.
func messageBytesAt(ctx context.Context, cl *kgo.Client, broker int32, topic string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req := kmsg.NewPtrDescribeConfigsRequest()
	of := kmsg.NewDescribeConfigsRequestResource()
	of.ResourceType, of.ResourceName, of.ConfigNames = kmsg.ConfigResourceTypeTopic, topic, []string{maxMessageBytes}
	req.Resources = append(req.Resources, of)
	resp, err := req.RequestWith(ctx, cl.Broker(int(broker)))
	if err != nil {
		return "", fmt.Errorf("kafka: topic %s: asking broker %d for its settings: %w", topic, broker, classified(err))
	}
	for _, r := range resp.Resources {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return "", fmt.Errorf("kafka: topic %s: asking broker %d for its settings: %w", topic, broker, classified(err))
		}
		for _, s := range r.Configs {
			if s.Name == maxMessageBytes && s.Value != nil {
				return *s.Value, nil
			}
		}
	}
	return "", fmt.Errorf("kafka: topic %s: %w: broker %d does not say what its %s is", topic, model.ErrTransient, broker, maxMessageBytes)
}

// probe returns an error unless the leader of each partition refuses a record. One that is taken has no rows.
func probe(ctx context.Context, cl *kgo.Client, topic string, partitions int32) error {
	value := probeValue()
	records := make([]*kgo.Record, partitions)
	for p := range records {
		records[p] = &kgo.Record{Topic: topic, Partition: int32(p), Value: value}
	}
	for _, r := range cl.ProduceSync(ctx, records...) {
		switch {
		case errors.Is(r.Err, kerr.MessageTooLarge):
		case r.Err != nil:
			return fmt.Errorf("kafka: topic %s, partition %d: asking whether it refuses records: %w", topic, r.Record.Partition, classified(r.Err))
		default:
			return fmt.Errorf("kafka: topic %s, partition %d: %w: it still takes records", topic, r.Record.Partition, model.ErrTransient)
		}
	}
	return nil
}
