package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/semaphore"

	"github.com/shaledb/shale/internal/journal"
	"github.com/shaledb/shale/internal/model"
)

// ProducerOptions configure a Producer. Zero values take the defaults that are named.
type ProducerOptions struct {
	Connection Connection
	// Topic, TopicID and Partitions are those that the installation has recorded. A topic with another
	// identity was made again: it is refused.
	Topic      string
	TopicID    string
	Partitions int32
	// PartitionOf returns the partition of a series, below Partitions.
	PartitionOf func(model.Key) int32
	// MaxBytes bounds the memory of batches from before they are encoded until Kafka has answered (64 MiB). A
	// larger batch waits until it is the only one.
	MaxBytes int64
	// Deliver bounds how long a batch may wait for memory, and then how long Kafka may take (15 s). It is
	// longer than the restart of a broker, so that senders see no error then.
	Deliver time.Duration
	// VerifyEvery is how often the identity of the topic is verified (10 s).
	VerifyEvery time.Duration
	// Metrics are those of the producer that was opened last; nil: new ones are registered at Registerer.
	Metrics    *ProducerMetrics
	Registerer prometheus.Registerer
	// Logger reports a topic that is no longer the recorded one; nil discards it.
	Logger *slog.Logger
}

func (o *ProducerOptions) setDefaults() {
	if o.MaxBytes <= 0 {
		o.MaxBytes = 64 << 20
	}
	if o.Deliver <= 0 {
		o.Deliver = 15 * time.Second
	}
	if o.VerifyEvery <= 0 {
		o.VerifyEvery = 10 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Producer appends batches to a topic. It is safe for concurrent use.
type Producer struct {
	o       ProducerOptions
	client  *kgo.Client
	metrics *ProducerMetrics
	health  *health
	// maxRecord is the size of the largest record that the topic takes. opened is what it was at first, which
	// the client keeps.
	maxRecord atomic.Int64
	opened    int64

	// room has one unit for each byte that batches may take; held counts the units in use.
	room      *semaphore.Weighted
	held      atomic.Int64
	splitters splitters

	// wrong is set once the topic is found to be another one, and sealed once it takes no more records.
	wrong  atomic.Pointer[TopicError]
	sealed atomic.Bool
	asking sync.Mutex // held while brokers are asked whether it does; guards asked
	asked  time.Time  // when they said last that it does not
	// ends tell whether it may be another one, and then it is suspect until it has been verified, which
	// hurry asks for.
	ends    ends
	suspect atomic.Bool
	hurry   chan struct{}
	stop    context.CancelFunc
	verify  sync.WaitGroup
	closed  atomic.Bool
}

// recordOverhead bounds what Kafka stores besides the bytes of a record that is alone in its batch: 61 bytes
// of the batch, and the numbers of the record.
const recordOverhead = 128

// OpenProducer connects, and refuses a topic that is not the recorded one.
func OpenProducer(ctx context.Context, o ProducerOptions) (*Producer, error) {
	o.setDefaults()
	p := &Producer{
		o: o, room: semaphore.NewWeighted(o.MaxBytes), splitters: make(splitters, maxSplitters),
		health: newHealth(), ends: make(ends, o.Partitions), hurry: make(chan struct{}, 1),
	}
	if err := p.readEnds(ctx); err != nil {
		return nil, err
	}
	t, err := Describe(ctx, o.Connection, o.Topic)
	if err != nil {
		return nil, err
	}
	if err := t.is(o.TopicID, o.Partitions); err != nil {
		return nil, err
	}
	maxBatch := t.maxMessageBytes()
	p.opened = int64(maxBatch) - recordOverhead
	p.maxRecord.Store(p.opened)
	p.client, err = o.Connection.client(
		kgo.WithHooks(p.health),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		// Lines are compressed inside records, keys and floats hardly shrink.
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(maxBatch),
		// A wait for more records was tried, and brings nothing: batches grow by themselves under load.
		kgo.ProducerLinger(0),
		// The bound of memory is room, which also covers what is being encoded.
		kgo.MaxBufferedRecords(math.MaxInt32),
		// A batch that Kafka has, while its answer is missing, is not given up, since a number of the
		// idempotent producer would be missing. Append then returns without it.
		kgo.RecordDeliveryTimeout(o.Deliver),
		kgo.UnknownTopicRetries(8), // metadata lags while brokers start
		// StopProducerOnDataLossDetected is left off: after a time-out it may see a loss that did not happen,
		// and then it never sends again. Readers detect a loss.
	)
	if err != nil {
		return nil, err
	}
	if p.metrics = o.Metrics; p.metrics == nil {
		p.metrics = NewProducerMetrics(o.Registerer)
	}
	p.metrics.of.Store(p)
	verifying, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.verify.Go(func() { p.verifyTopic(verifying) })
	return p, nil
}

// readEnds asks how far the partitions are. The identity of the topic is verified afterwards.
func (p *Producer) readEnds(ctx context.Context) error {
	all := make([]int32, p.o.Partitions)
	for i := range all {
		all[i] = int32(i)
	}
	has, err := Offsets(ctx, p.o.Connection, p.o.Topic, all...)
	if err != nil && !errors.Is(err, model.ErrTransient) {
		return err
	}
	for n, x := range has { // those of partitions without leaders are not known
		p.ends[n].Store(x.End)
	}
	return nil
}

// Append returns once all in-sync replicas have the batch: all parts, each in its partition. ctx bounds the
// wait for memory and for Kafka. After an error any part of the batch may be stored or not: the sender sends
// it again, and equal rows are stored once.
//
// A part that is larger than what the topic takes is divided into several records.
//
// After [ErrSealed] no later append will succeed, and no part of the batch will be stored that is not yet.
//
// Error classes: transient if Kafka did not acknowledge in time or the topic is not the recorded one, closed,
// and invalid for a batch with a single row, or an order, that is larger than what the topic takes.
func (p *Producer) Append(ctx context.Context, b *model.Batch) error {
	if err := p.refusal(); err != nil {
		return err
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, 2*p.o.Deliver)
	defer cancel()
	limit := int(p.maxRecord.Load())
	// Parts are copies, and so are their records.
	room := int64(2*journal.SizeHint(b) + journal.JoinHint(b))
	if journal.SizeHint(b) > limit {
		room *= 2 // dividing copies once more
	}
	room = min(room, p.o.MaxBytes)
	if err := p.enter(ctx, room); err != nil {
		return err
	}
	parts := split(p.splitters, b, p.o.Partitions, p.o.PartitionOf, limit)
	for i := range parts {
		if n := len(parts[i].record); n > limit {
			p.leave(room)
			return fmt.Errorf("kafka: topic %s, partition %d: %w: a record of a single row has %d bytes, and the topic takes %d (max.message.bytes)",
				p.o.Topic, parts[i].partition, model.ErrInvalid, n, limit)
		}
	}
	err := p.send(ctx, parts, room)
	if errors.Is(err, kerr.MessageTooLarge) && p.isSealed(ctx) {
		err = p.refusal()
	}
	p.metrics.appended(parts, time.Since(begun), err)
	return err
}

// refusal returns why nothing is appended, or nil.
func (p *Producer) refusal() error {
	if p.closed.Load() {
		return fmt.Errorf("kafka: topic %s: %w", p.o.Topic, model.ErrClosed)
	}
	if wrong := p.wrong.Load(); wrong != nil {
		// Senders keep their data until an operator has repaired this.
		return fmt.Errorf("%w: %w", model.ErrTransient, wrong)
	}
	if p.sealed.Load() {
		return fmt.Errorf("kafka: topic %s: %w: %w", p.o.Topic, model.ErrTransient, ErrSealed)
	}
	if p.suspect.Load() {
		return p.suspected()
	}
	return nil
}

// isSealed asks brokers whether the topic takes no more records, after one of them has refused some. Others
// may know of it a moment later.
func (p *Producer) isSealed(ctx context.Context) bool {
	p.asking.Lock()
	defer p.asking.Unlock()
	for try := range 3 {
		if p.sealed.Load() || time.Since(p.asked) < sealAgain {
			return p.sealed.Load()
		}
		if try > 0 {
			select {
			case <-ctx.Done():
				return false
			case <-time.After(2 * sealEvery):
			}
		}
		if t, err := describe(ctx, p.client, p.o.Topic); err == nil {
			p.sealed.Store(t.ID == p.o.TopicID && t.Sealed())
		}
	}
	if !p.sealed.Load() {
		p.asked = time.Now()
	}
	return p.sealed.Load()
}

// Unseal takes appends again if the topic does: whoever sealed it has given that up. The caller knows that no
// other topic takes writes.
func (p *Producer) Unseal(ctx context.Context) {
	if !p.sealed.Load() {
		return
	}
	p.asking.Lock()
	defer p.asking.Unlock()
	if t, err := describe(ctx, p.client, p.o.Topic); err == nil && t.ID == p.o.TopicID && !t.Sealed() {
		p.maxRecord.Store(min(p.opened, int64(t.maxMessageBytes())-recordOverhead))
		p.sealed.Store(false)
		p.o.Logger.Warn("the topic takes records again, and no other one has followed", "topic", p.o.Topic)
	}
}

// sealAgain is for how long batches that were refused take for granted that the topic is not sealed.
const sealAgain = time.Second

func (p *Producer) suspected() error {
	return fmt.Errorf("kafka: topic %s: %w: brokers have taken a record at an offset that the topic had before; verifying which topic it is", p.o.Topic, model.ErrTransient)
}

// readyWithin is how long brokers may not answer before Ready says so.
const readyWithin = 30 * time.Second

// Ready returns why appends would fail now, or nil. It asks no broker: it knows how the last requests ended.
func (p *Producer) Ready() error {
	if err := p.refusal(); err != nil {
		return err
	}
	if age := p.health.age(); age > readyWithin {
		err := fmt.Errorf("kafka: topic %s: %w: no broker has answered for %s", p.o.Topic, model.ErrTransient, age.Round(time.Second))
		return p.health.cause(err, time.Time{})
	}
	return nil
}

// enter reserves memory for a batch, from before it is encoded until Kafka has answered.
func (p *Producer) enter(ctx context.Context, bytes int64) error {
	waiting, cancel := context.WithTimeout(ctx, p.o.Deliver)
	defer cancel()
	if err := p.room.Acquire(waiting, bytes); err != nil {
		p.metrics.full.Inc()
		return fmt.Errorf("kafka: topic %s: %w: the %d bytes for batches that wait for Kafka are full: %w", p.o.Topic, model.ErrTransient, p.o.MaxBytes, err)
	}
	p.held.Add(bytes)
	return nil
}

func (p *Producer) leave(bytes int64) {
	p.held.Add(-bytes)
	p.room.Release(bytes)
}

// outcome collects the answers for the parts of one batch.
type outcome struct {
	mu     sync.Mutex
	left   int
	failed int
	err    error // the first one
	done   chan struct{}
}

// send sends the parts of a batch together, and waits for all answers. Their memory is returned when the last
// answer has come, also if the caller has gone by then.
func (p *Producer) send(ctx context.Context, parts []part, room int64) error {
	if len(parts) == 0 {
		p.leave(room)
		return nil
	}
	o := &outcome{left: len(parts), done: make(chan struct{})}
	begun := time.Now()
	// The client is not given ctx: a record whose sender has gone is in flight all the same.
	for i := range parts {
		r := &kgo.Record{Topic: p.o.Topic, Partition: parts[i].partition, Value: parts[i].record}
		p.client.Produce(context.Background(), r, func(r *kgo.Record, err error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			if err != nil {
				err = p.failure(r.Partition, p.health.cause(err, begun))
			} else if !p.ends.took(r.Partition, r.Offset) {
				p.doubt()
				err = p.suspected()
			}
			if err != nil {
				if o.failed++; o.err == nil {
					o.err = err
				}
			}
			if o.left--; o.left == 0 {
				p.leave(room)
				close(o.done)
			}
		})
	}
	select {
	case <-o.done:
	case <-ctx.Done():
		return p.health.cause(fmt.Errorf("kafka: topic %s, partition %d and %s of the batch: %w: not acknowledged: %w",
			p.o.Topic, parts[0].partition, english.Plural(len(parts)-1, "other", ""), model.ErrTransient, ctx.Err()), begun)
	}
	if o.failed > 1 || o.failed > 0 && len(parts) > 1 {
		return fmt.Errorf("%w (%d of %d parts of the batch failed)", o.err, o.failed, len(parts))
	}
	return o.err
}

// doubt refuses appends until the topic has been verified.
func (p *Producer) doubt() {
	p.suspect.Store(true)
	select {
	case p.hurry <- struct{}{}:
	default: // it has been asked for
	}
}

// failure names the place and the cause of an error, and gives it its class.
func (p *Producer) failure(partition int32, err error) error {
	class := model.ErrTransient
	switch {
	case errors.Is(err, kgo.ErrClientClosed):
		class = model.ErrClosed
	case errors.Is(err, kerr.MessageTooLarge):
		// The topic takes less than it did. Records fit again once verifyTopic has asked.
		return fmt.Errorf("kafka: topic %s, partition %d: %w: max.message.bytes of the topic was lowered: %w",
			p.o.Topic, partition, class, err)
	}
	return fmt.Errorf("kafka: topic %s, partition %d: %w: not acknowledged: %w", p.o.Topic, partition, class, err)
}

// verifyTopic asks again and again whether the topic is still the recorded one. What a topic that was made
// again acknowledges is in no partition that ingesters read. It asks for the largest record, too.
func (p *Producer) verifyTopic(ctx context.Context) {
	tick := time.NewTicker(p.o.VerifyEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-p.hurry:
		}
		doubted := p.suspect.Load()
		t, err := describe(ctx, p.client, p.o.Topic)
		if err != nil {
			continue // appends fail by themselves while brokers are away
		}
		id := t.ID
		p.maxRecord.Store(min(p.opened, int64(t.maxMessageBytes())-recordOverhead))
		if id == p.o.TopicID {
			if doubted {
				// It is the same topic: brokers have lost records, which readers notice.
				p.o.Logger.Warn("brokers have taken records at offsets that the topic had before", "topic", p.o.Topic, "id", id)
				p.ends.forget()
				p.suspect.Store(false)
			}
			if p.wrong.Swap(nil) != nil {
				p.o.Logger.Info("the topic is the recorded one again", "topic", p.o.Topic, "id", id)
			}
			continue
		}
		wrong := &TopicError{p.o.Topic, fmt.Sprintf("it was made again: its id is %s, and %s is recorded; run shale kafka adopt", id, p.o.TopicID)}
		if p.wrong.Swap(wrong) == nil {
			p.o.Logger.Error("refusing all writes", "err", wrong)
		}
	}
}

// Held returns the bytes of batches that wait for Kafka, with those that are being encoded.
func (p *Producer) Held() int64 { return p.held.Load() }

// Close waits until Kafka has answered for what was appended, or until ctx ends, and refuses further batches.
func (p *Producer) Close(ctx context.Context) error {
	if p.closed.Swap(true) {
		return nil
	}
	p.stop()
	p.verify.Wait()
	err := p.client.Flush(ctx)
	p.client.Close()
	if err != nil {
		return fmt.Errorf("kafka: topic %s: %w: closing before all batches were acknowledged: %w", p.o.Topic, model.ErrTransient, err)
	}
	return nil
}
