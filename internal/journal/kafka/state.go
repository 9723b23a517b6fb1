package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/shaledb/shale/internal/model"
)

// StateTopic returns the name of the topic with what processes tell each other about a topic of batches. It
// has one partition, and Kafka keeps the last record of each key.
func StateTopic(topic string) string { return topic + "-state" }

const (
	// stateMessage bounds a record of state.
	stateMessage = 1 << 20
	// stateQueue bounds the records that wait for Kafka.
	stateQueue = 16 << 10
	// stateBytes bounds their memory.
	stateBytes = 32 << 20
	// stateDeliver is after how long a record that Kafka does not take is given up. A newer one follows.
	stateDeliver = 10 * time.Second
	// leastLag is how long all records stay: which of several records of a key counts may depend on their order,
	// and the one that counts is written again within seconds.
	leastLag = time.Minute
)

// CreateState makes the state topic of a topic, unless it is there.
func CreateState(ctx context.Context, c Connection, p Plan) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	settings := map[string]*string{}
	for name, value := range map[string]string{
		cleanupPolicy:   "compact",
		minInsync:       fmt.Sprint(p.MinInsync),
		maxMessageBytes: fmt.Sprint(stateMessage + recordOverhead),
		uncleanElection: "false",
		// Whoever starts reads all records, and most are replaced each 10 s.
		"segment.ms": fmt.Sprint((10 * time.Minute).Milliseconds()),
		minLag:       fmt.Sprint(leastLag.Milliseconds()),
	} {
		settings[name] = &value
	}
	name := StateTopic(p.Topic)
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	_, err = kadm.NewClient(cl).CreateTopic(asking, 1, p.Replicas, settings, name)
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("kafka: creating topic %s: %w", name, classified(err))
	}
	_, err = settled(ctx, cl, Plan{Topic: name, Partitions: 1})
	return err
}

// CheckState judges a state topic.
func CheckState(t *Topic) (all []Finding) {
	add := func(refused bool, setting, value, why string) {
		all = append(all, Finding{Setting: t.Name + ": " + setting, Value: value, Refused: refused, Why: why})
	}
	if t.Partitions != 1 {
		add(true, "partitions", fmt.Sprint(t.Partitions), "must be 1: its records have one order")
	}
	if v := t.Settings[cleanupPolicy]; v != "compact" {
		add(true, cleanupPolicy, v, "must be compact: otherwise it grows without an end, or forgets what is still true")
	}
	if n, ok := t.number(minLag); !ok || n < leastLag.Milliseconds() {
		add(false, minLag, t.Settings[minLag], fmt.Sprintf("should be at least %d: with ha.deduplicate, a gateway that starts while another one elects could see another leader for some seconds", leastLag.Milliseconds()))
	}
	if n, ok := t.number(maxMessageBytes); !ok || n < stateMessage {
		add(true, maxMessageBytes, t.Settings[maxMessageBytes], fmt.Sprintf("must be at least %d", stateMessage))
	}
	return all
}

// StateOptions configure a State.
type StateOptions struct {
	Connection Connection
	// Topic is that of the batches.
	Topic string
	// Take is told of each record, in their order: first of those that there are, then of those that come. It
	// may not keep the value. nil: the process reads none.
	Take func(key string, value []byte, offset int64)
	// Again is told that the topic was deleted and made again, before Take is told of its records. nil: it makes
	// no difference.
	Again      func()
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// State tells other processes what they should know, and is told. Nothing that it carries is needed for an
// answer to be right: without the topic, processes go on as if no one told them anything. Only gateways that
// elect replicas of HA pairs refuse these without it. A topic that is made again is used from then on. It is
// safe for concurrent use.
type State struct {
	o      StateOptions
	client atomic.Pointer[kgo.Client]
	stop   context.CancelFunc
	done   sync.WaitGroup
	topics atomic.Int64 // how many topics of the name there were
	// hurry has capacity 1, and gets a token when the topic may be another one. unknown is the last client that
	// uses an identity of the topic which brokers do not know.
	hurry   chan struct{}
	unknown atomic.Pointer[kgo.Client]
	// told is the identity of the topic that Take was last told of; nil: of none yet.
	told atomic.Pointer[[16]byte]

	read, written, failed, refused, foreign, again prometheus.Counter
	failing                                        atomic.Bool // the last record was not taken
}

// stateEvery is how often it is asked whether the topic is still the same, and stateAgain how long after an
// error that says so.
const (
	stateEvery = 5 * time.Second
	stateAgain = time.Second
)

// OpenState begins to read the state topic of a topic.
func OpenState(o StateOptions) (*State, error) {
	f := func(c prometheus.CounterOpts) prometheus.Counter { return counter(o.Registerer, c) }
	s := &State{
		o:       o,
		hurry:   make(chan struct{}, 1),
		read:    f(prometheus.CounterOpts{Name: "shale_state_read_records_total", Help: "Records of the state topic that this process has read."}),
		written: f(prometheus.CounterOpts{Name: "shale_state_written_records_total", Help: "Records that this process has written to the state topic."}),
		failed:  f(prometheus.CounterOpts{Name: "shale_state_failed_records_total", Help: "Records that Kafka did not take into the state topic; newer ones follow."}),
		refused: f(prometheus.CounterOpts{Name: "shale_state_oversized_records_total", Help: "Records of the state topic that are larger than this version takes, and are not used."}),
		foreign: f(prometheus.CounterOpts{Name: "shale_state_foreign_records_total", Help: "Records of the state topic that are ignored because their writers had read the deleted topic, not this one."}),
		again:   f(prometheus.CounterOpts{Name: "shale_state_topic_changes_total", Help: "Times that the state topic was found to be another one than before: it was deleted and made again."}),
	}
	if err := s.connect(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	if o.Take != nil {
		s.done.Go(func() { s.follow(ctx) })
	}
	s.done.Go(func() { s.watch(ctx) })
	return s, nil
}

// connect begins with the topic that has the name now.
func (s *State) connect() error {
	name := StateTopic(s.o.Topic)
	options := []kgo.Opt{
		kgo.DefaultProduceTopic(name),
		kgo.MaxBufferedRecords(stateQueue),
		kgo.MaxBufferedBytes(stateBytes),
		kgo.ProducerBatchMaxBytes(stateMessage + recordOverhead),
		kgo.RecordDeliveryTimeout(stateDeliver),
	}
	if s.o.Take != nil {
		options = append(options,
			kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{name: {0: kgo.NewOffset().AtStart()}}),
			kgo.FetchMaxBytes(4*stateMessage), kgo.FetchMaxWait(maxFetchWait), kgo.MaxConcurrentFetches(1))
	}
	client, err := s.o.Connection.client(options...)
	if err != nil {
		return err
	}
	before := s.client.Swap(client)
	s.topics.Add(1)
	if before != nil {
		before.Close()
	}
	return nil
}

// Topics returns how many topics of the name this process has seen. What was written to an earlier one is
// gone.
func (s *State) Topics() int64 { return s.topics.Load() }

// watch notices that the topic was deleted and made again, until ctx ends. A client goes on with the topic
// that it knew, so that another one is needed.
func (s *State) watch(ctx context.Context) {
	tick := time.NewTicker(stateEvery)
	defer tick.Stop()
	name, id := StateTopic(s.o.Topic), ""
	for {
		t, err := placement(ctx, s.client.Load(), name)
		if ctx.Err() != nil {
			return
		}
		if err == nil { // otherwise it is not there, or brokers are away
			if s.another(id, t.ID) {
				s.again.Inc()
				s.o.Logger.Warn("the state topic was made again; going on with the new one", "topic", name, "id", t.ID, "before", id)
				if err := s.connect(); err != nil { // its files of TLS or of the login are gone
					s.unknown.Store(s.client.Load())
					s.o.Logger.Error("cannot go on with another state topic; trying again", "topic", name, "err", err)
				}
			}
			id = t.ID
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.hurry:
			select {
			case <-ctx.Done():
				return
			case <-time.After(stateAgain):
			}
		}
	}
}

// another reports whether the client uses a topic that is no more, given the identity that it had when it was
// asked before, and the one that it has now. What an earlier client was told counts no more.
func (s *State) another(before, id string) bool {
	return before != "" && before != id || s.unknown.Load() == s.client.Load()
}

// doubt has it asked soon whether the topic is another one than that of a client.
func (s *State) doubt(client *kgo.Client, err error) {
	if !errors.Is(err, kerr.UnknownTopicID) && !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return
	}
	if errors.Is(err, kerr.UnknownTopicID) {
		s.unknown.Store(client)
	}
	select {
	case s.hurry <- struct{}{}:
	default:
	}
}

// counter returns a counter that all states of a process share: its roles open one each.
func counter(r prometheus.Registerer, o prometheus.CounterOpts) prometheus.Counter {
	c := prometheus.NewCounter(o)
	if r == nil {
		return c
	}
	err := r.Register(c)
	if before, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return before.ExistingCollector.(prometheus.Counter)
	}
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return c
}

// follow reads until ctx ends.
func (s *State) follow(ctx context.Context) {
	failing := false
	reading := s.client.Load()
	for ctx.Err() == nil {
		if client := s.client.Load(); client != reading {
			reading = client
			if s.o.Again != nil {
				s.o.Again()
			}
			s.told.Store(nil)
		}
		fetches := reading.PollFetches(ctx)
		if fetches.IsClientClosed() {
			continue
		}
		err := fetches.Err0()
		fetches.EachError(func(_ string, _ int32, e error) { err = e })
		s.doubt(reading, err)
		s.take(fetches)
		if err != nil && ctx.Err() == nil {
			if !failing {
				s.o.Logger.Warn("cannot read the state topic; trying again", "topic", StateTopic(s.o.Topic), "err", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
		failing = err != nil
	}
}

// take tells Take of records.
func (s *State) take(fetches kgo.Fetches) {
	for _, f := range fetches {
		for _, t := range f.Topics {
			if t.TopicID != ([16]byte{}) && (s.told.Load() == nil || *s.told.Load() != t.TopicID) {
				s.told.Store(&t.TopicID)
			}
			t.EachRecord(func(r *kgo.Record) {
				s.read.Inc()
				switch {
				case len(r.Value) > stateMessage:
					s.refused.Inc()
				case writtenFor(r, t.TopicID):
					s.o.Take(string(r.Key), r.Value, r.Offset)
				default:
					s.foreign.Inc()
				}
			})
		}
	}
}

// topicHeader has the identity of the topic that the writer of a record had read. When a topic is made again,
// a client that has not written to it before writes to the new one while it still reads the old one. So it
// would elect a replica by what it knows from there, after others have gone on.
const topicHeader = "topic"

// headers returns those of a record that is written now.
func (s *State) headers() []kgo.RecordHeader {
	id := s.told.Load()
	if id == nil {
		return nil
	}
	return []kgo.RecordHeader{{Key: topicHeader, Value: id[:]}}
}

// writtenFor reports whether the writer of a record had read no other topic than the one with an identity.
// That is zero if the broker is too old to say it.
func writtenFor(r *kgo.Record, id [16]byte) bool {
	for _, h := range r.Headers {
		if h.Key == topicHeader {
			return id == [16]byte{} || string(h.Value) == string(id[:])
		}
	}
	return true
}

// Put tells the others. It does not wait: a record that Kafka does not take in time is counted and logged.
func (s *State) Put(key string, value []byte) {
	if len(value) > stateMessage {
		s.failed.Inc()
		s.o.Logger.Error("a record for the state topic is too large", "key", key, "bytes", len(value), "limit", stateMessage)
		return
	}
	client := s.client.Load()
	client.TryProduce(context.Background(), &kgo.Record{Key: []byte(key), Value: value, Headers: s.headers()}, func(_ *kgo.Record, err error) {
		if err == nil {
			s.written.Inc()
			s.failing.Store(false)
			return
		}
		s.failed.Inc()
		s.doubt(client, err)
		if !errors.Is(err, kgo.ErrClientClosed) && !s.failing.Swap(true) { // the first of several in a row
			s.o.Logger.Warn("cannot write to the state topic", "topic", StateTopic(s.o.Topic), "key", key, "err", fmt.Errorf("%w: %w", model.ErrTransient, err))
		}
	})
}

// Close ends the reading, and gives up what Kafka has not taken.
func (s *State) Close() {
	s.stop()
	s.done.Wait()
	s.client.Load().Close()
}
