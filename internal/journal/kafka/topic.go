package kafka

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/shaledb/shale/internal/model"
)

// Topic is what brokers say about a topic.
type Topic struct {
	Name string `json:"topic"`
	// ID is the identity of the topic, as Kafka's tools print it. A topic that is deleted and made again gets
	// another one.
	ID         string            `json:"topic_id"`
	Partitions int32             `json:"partitions"`
	Replicas   int               `json:"replicas"` // the least of all partitions
	Brokers    int               `json:"brokers"`  // of the cluster
	Leaderless []int32           `json:"leaderless,omitempty"`
	Behind     []int32           `json:"under_replicated,omitempty"`
	Settings   map[string]string `json:"settings"`
}

// ErrNoTopic says that the cluster has no such topic. It is joined by class invalid.
var ErrNoTopic = errors.New("the cluster has no such topic")

// Describe asks for a topic and its settings.
func Describe(ctx context.Context, c Connection, topic string) (*Topic, error) {
	cl, err := c.client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	return describe(ctx, cl, topic)
}

func describe(ctx context.Context, cl *kgo.Client, topic string) (*Topic, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	t, err := placement(ctx, cl, topic)
	if err != nil {
		return nil, err
	}
	all, err := kadm.NewClient(cl).DescribeTopicConfigs(ctx, topic)
	if err == nil {
		var one kadm.ResourceConfig
		if one, err = all.On(topic, nil); err == nil {
			err = one.Err
		}
		for i := range one.Configs {
			t.Settings[one.Configs[i].Key] = one.Configs[i].MaybeValue()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("kafka: topic %s: asking for its settings: %w", topic, classified(err))
	}
	return t, nil
}

// placement asks for everything about a topic except its settings.
func placement(ctx context.Context, cl *kgo.Client, topic string) (*Topic, error) {
	m, err := kadm.NewClient(cl).Metadata(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", classified(err))
	}
	d, ok := m.Topics[topic]
	if !ok || errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
		return nil, fmt.Errorf("kafka: topic %s: %w: %w", topic, model.ErrInvalid, ErrNoTopic)
	}
	if d.Err != nil {
		return nil, fmt.Errorf("kafka: topic %s: %w", topic, classified(d.Err))
	}
	if d.ID == (kadm.TopicID{}) {
		return nil, fmt.Errorf("kafka: topic %s: %w: the brokers give it no id, so a topic that was deleted and made again could not be distinguished from it; Kafka 3.1 or later is needed", topic, model.ErrInvalid)
	}
	t := &Topic{Name: topic, ID: idText(d.ID), Partitions: int32(len(d.Partitions)), Brokers: len(m.Brokers), Settings: map[string]string{}}
	for _, p := range d.Partitions.Sorted() {
		if t.Replicas == 0 || len(p.Replicas) < t.Replicas {
			t.Replicas = len(p.Replicas)
		}
		if p.Leader < 0 || p.Err != nil {
			t.Leaderless = append(t.Leaderless, p.Partition)
		} else if len(p.ISR) < len(p.Replicas) {
			t.Behind = append(t.Behind, p.Partition)
		}
	}
	return t, nil
}

func idText(id [16]byte) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// is returns an error unless the topic is the recorded one. More partitions than are recorded are not used.
func (t *Topic) is(id string, partitions int32) error {
	switch {
	case t.ID != id:
		return &TopicError{t.Name, fmt.Sprintf("its id is %s, and %s is recorded: it was made again, or belongs to another installation; run shale kafka adopt", t.ID, id)}
	case t.Partitions < partitions:
		return &TopicError{t.Name, fmt.Sprintf("it has %s, and the recorded number is %d", english.Plural(int(t.Partitions), "partition", ""), partitions)}
	}
	return nil
}

// number returns the value of a setting, and whether it is a number.
func (t *Topic) number(setting string) (int64, bool) {
	n, err := strconv.ParseInt(t.Settings[setting], 10, 64)
	return n, err == nil
}

// defaultMaxMessage is what brokers take if no setting says more.
const defaultMaxMessage = 1_048_588

func (t *Topic) maxMessageBytes() int32 {
	if n, ok := t.number(maxMessageBytes); ok && n > recordOverhead {
		return int32(min(n, mostMessage))
	}
	return defaultMaxMessage
}

// Plan describes a topic to be made.
type Plan struct {
	Topic      string
	Partitions int32
	Replicas   int16
	MinInsync  int
	Retention  time.Duration
	MaxMessage int64
}

// Create makes a topic, and returns it once each partition has a leader.
func Create(ctx context.Context, c Connection, p Plan) (*Topic, error) {
	cl, err := c.client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	settings := map[string]*string{}
	for name, value := range map[string]string{
		cleanupPolicy:   "delete",
		timestampType:   "LogAppendTime",
		minInsync:       strconv.Itoa(p.MinInsync),
		retentionMS:     strconv.FormatInt(p.Retention.Milliseconds(), 10),
		retentionBytes:  "-1",
		maxMessageBytes: strconv.FormatInt(p.MaxMessage, 10),
		uncleanElection: "false",
	} {
		settings[name] = &value
	}
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	made, err := kadm.NewClient(cl).CreateTopic(asking, p.Partitions, p.Replicas, settings, p.Topic)
	if err != nil {
		class := model.ErrTransient
		if errors.Is(err, kerr.TopicAlreadyExists) || errors.Is(err, kerr.InvalidReplicationFactor) || errors.Is(err, kerr.InvalidConfig) ||
			errors.Is(err, kerr.InvalidTopicException) || errors.Is(err, kerr.PolicyViolation) {
			class = model.ErrInvalid
		}
		if made.ErrMessage != "" {
			err = fmt.Errorf("%w: %s", err, made.ErrMessage)
		}
		return nil, fmt.Errorf("kafka: creating topic %s: %w: %w", p.Topic, class, err)
	}
	return settled(ctx, cl, p)
}

// A new topic is known to some brokers before others, and its partitions have leaders later.
const (
	settleWithin = 30 * time.Second
	settleEvery  = 200 * time.Millisecond
)

// settled waits until brokers know a new topic and its leaders.
func settled(ctx context.Context, cl *kgo.Client, p Plan) (*Topic, error) {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	for {
		t, err := describe(ctx, cl, p.Topic)
		if err == nil && t.Partitions == p.Partitions && len(t.Leaderless) == 0 {
			return t, nil
		}
		if err == nil {
			err = fmt.Errorf("%d of %s known, without a leader: %v", t.Partitions, english.Plural(int(p.Partitions), "partition", ""), t.Leaderless)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("kafka: topic %s was created, but is not ready after %s: %w: %w", p.Topic, settleWithin, model.ErrTransient, err)
		case <-time.After(settleEvery):
		}
	}
}
