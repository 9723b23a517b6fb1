package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/shaledb/shale/internal/journal"
	"github.com/shaledb/shale/internal/model"
)

// ReaderOptions configure a Reader.
type ReaderOptions struct {
	Connection Connection
	// Topic and TopicID are those that the installation has recorded.
	Topic     string
	TopicID   string
	Partition int32
	// From is the first offset to read. It is never taken from Kafka: whoever keeps the rows knows it.
	From int64
	// FromEpoch is the LeaderEpoch of the record before From; nil: it is not known. With it, the first read
	// notices brokers that lost records before From and have taken others in their place.
	FromEpoch *int32
	// MaxBytes bounds one response; 0 means 4 MiB. One is being read while another waits, so that twice as much
	// memory is taken. A response with a single larger record is as large as the record.
	MaxBytes int32
	Metrics  *ReaderMetrics
}

// Record is one batch of a partition.
type Record struct {
	Offset int64
	// LeaderEpoch counts the leaders of the partition up to the one that took the record; -1: it is not known.
	LeaderEpoch int32
	// Appended is when a broker took the record, in Unix nanoseconds by the clock of that broker.
	Appended int64
	// Batch is valid until the function that it was given to returns.
	Batch *model.Batch
}

// Reader reads one partition in the order of offsets, without a gap. It is for one goroutine. Each reader has
// a client of its own, so that a partition whose rows are waited for holds back no other.
type Reader struct {
	o      ReaderOptions
	client *kgo.Client
	health *health
	next   int64
	end    int64
	batch  model.Batch
	// known says that brokers still have what was before From.
	known bool
	// empty counts the reads in a row that brought nothing.
	empty int
	// failed is why no more is read.
	failed error
}

// A client retries by itself without an end, and says nothing of it. So brokers are asked for the end of a
// partition at the first read that brings nothing, and then at each fifth, some 10 s later.
const (
	askEvery = 5
	askIdle  = 10 * time.Second
)

// maxFetchWait is how long Kafka waits for a record before it says that there is none.
const maxFetchWait = time.Second

// OpenReader opens a reader. It refuses a topic that is not the recorded one. Whether From is still there is
// found by the first read.
func OpenReader(ctx context.Context, o ReaderOptions) (*Reader, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = 4 << 20
	}
	r := &Reader{o: o, next: o.From, end: -1, health: newHealth()}
	from := kgo.NewOffset().At(o.From)
	if r.known = o.FromEpoch == nil || *o.FromEpoch < 0; !r.known {
		from = from.WithEpoch(*o.FromEpoch) // leaders that follow before the first record are asked, too
	}
	var err error
	r.client, err = o.Connection.client(
		kgo.WithHooks(r.health),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{o.Topic: {o.Partition: from}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxBytes(o.MaxBytes),
		kgo.FetchMaxPartitionBytes(o.MaxBytes),
		kgo.FetchMaxWait(maxFetchWait),
		kgo.MaxConcurrentFetches(1),
	)
	if err != nil {
		return nil, err
	}
	if err := r.recorded(ctx); err != nil {
		r.client.Close()
		return nil, err
	}
	return r, nil
}

func (r *Reader) recorded(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	t, err := placement(ctx, r.client, r.o.Topic)
	if errors.Is(err, ErrNoTopic) {
		return &TopicError{r.o.Topic, fmt.Sprintf("it was deleted: %s, and one with the id %s is recorded", ErrNoTopic, r.o.TopicID)}
	}
	if err != nil {
		return err
	}
	return t.is(r.o.TopicID, r.o.Partition+1)
}

// Next returns the offset of the first record that fn was not given, or that it failed for.
func (r *Reader) Next() int64 { return r.next }

// End returns the offset after the last record, as of the last response; -1: there was none.
func (r *Reader) End() int64 { return r.end }

// Read waits for records, and gives those of one response to fn. It returns nil without records too, so that
// the caller can look at Next and End. If brokers do not answer, it says so after some 20 s. An error of fn
// is returned, and its record is given again by no later call: the reader has failed.
//
// A [GapError], a [PoisonError] or a [TopicError] is returned by all later calls. Other errors are of class
// transient, and the next call goes on, or of class closed once ctx has ended.
func (r *Reader) Read(ctx context.Context, fn func(*Record) error) error {
	if r.failed != nil {
		return r.failed
	}
	err := r.read(ctx, fn)
	if err != nil && (errors.Is(err, model.ErrCorrupt) || errors.Is(err, model.ErrInvalid)) {
		r.failed = err
		r.client.PauseFetchPartitions(map[string][]int32{r.o.Topic: {r.o.Partition}})
	}
	if m := r.o.Metrics; m != nil {
		if r.end >= 0 {
			m.lag.WithLabelValues(r.o.Topic, name(r.o.Partition)).Set(float64(max(0, r.end-r.next)))
		}
		m.answered.WithLabelValues(r.o.Topic, name(r.o.Partition)).Set(float64(r.health.answered.Load()) / 1e9)
		failed := 0.0
		if r.failed != nil {
			failed = 1
		}
		m.failed.WithLabelValues(r.o.Topic, name(r.o.Partition)).Set(failed)
	}
	return err
}

func (r *Reader) read(ctx context.Context, fn func(*Record) error) error {
	if !r.known {
		if err := r.kept(ctx); err != nil {
			return err
		}
		r.known = true
	}
	// An idle partition has no responses for the client's user, but its end is worth knowing.
	waiting, cancel := context.WithTimeout(ctx, 2*maxFetchWait)
	defer cancel()
	fetches := r.client.PollFetches(waiting)
	var passing error // the client has moved past records that are not given to fn now
	for _, f := range fetches {
		for i := range f.Topics {
			t := &f.Topics[i]
			if t.TopicID != [16]byte{} && idText(t.TopicID) != r.o.TopicID {
				return &TopicError{r.o.Topic, fmt.Sprintf("it was made again: its id is %s, and %s is recorded", idText(t.TopicID), r.o.TopicID)}
			}
			for j := range t.Partitions {
				p := &t.Partitions[j]
				if err := r.records(p, fn); err != nil {
					return err
				}
				switch err := r.problem(ctx, p.Err); {
				case err == nil:
				case errors.Is(err, model.ErrTransient):
					passing = err
				default:
					return err
				}
			}
		}
	}
	switch {
	case fetches.NumRecords() > 0:
		r.empty = 0
	case passing == nil && waiting.Err() != nil:
		return r.idle(ctx)
	}
	return passing
}

// idle asks for the end of a partition that brings nothing.
func (r *Reader) idle(ctx context.Context) error {
	if r.empty++; r.empty%askEvery != 1 {
		return nil
	}
	r.empty = 0 // the next read asks again unless there is an answer
	asking, cancel := context.WithTimeout(ctx, askIdle)
	defer cancel()
	all, err := extents(asking, r.client, r.o.Topic, []int32{r.o.Partition})
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("kafka: %w: %w", model.ErrClosed, ctx.Err())
		}
		return fmt.Errorf("kafka: partition %d brings nothing: %w", r.o.Partition, err)
	}
	r.empty, r.end = 1, max(r.next, all[r.o.Partition].End)
	return nil
}

// records gives the records of a response to fn.
func (r *Reader) records(p *kgo.FetchPartition, fn func(*Record) error) error {
	read, bytes := 0, 0
	defer func() {
		if m := r.o.Metrics; m != nil && read > 0 {
			m.records.WithLabelValues(r.o.Topic, name(r.o.Partition)).Add(float64(read))
			m.bytes.WithLabelValues(r.o.Topic, name(r.o.Partition)).Add(float64(bytes))
		}
	}()
	for _, rec := range p.Records {
		if rec.Offset != r.next {
			return r.jump(rec.Offset)
		}
		if err := journal.DecodeBatch(rec.Value, &r.batch); err != nil {
			return &PoisonError{r.o.Topic, r.o.Partition, rec.Offset, err}
		}
		if err := fn(&Record{Offset: rec.Offset, LeaderEpoch: rec.LeaderEpoch, Appended: rec.Timestamp.UnixNano(), Batch: &r.batch}); err != nil {
			r.failed = err
			return err
		}
		r.next++
		read, bytes = read+1, bytes+len(rec.Value)
	}
	if p.Err == nil || len(p.Records) > 0 {
		r.end = max(p.HighWatermark, r.next)
	}
	return nil
}

// jump is the error for a record that does not follow the one before.
func (r *Reader) jump(offset int64) error {
	if offset < r.next {
		return &PoisonError{r.o.Topic, r.o.Partition, offset, fmt.Errorf("it came where offset %d was expected", r.next)}
	}
	return &GapError{r.o.Topic, r.o.Partition, r.next, offset - 1,
		"the next record has a later offset, as after compaction, a deletion of records, or writes in transactions"}
}

// problem gives the error of a response its type.
func (r *Reader) problem(ctx context.Context, err error) error {
	var loss *kgo.ErrDataLoss
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return nil // an idle partition
	case ctx.Err() != nil:
		return fmt.Errorf("kafka: %w: %w", model.ErrClosed, ctx.Err())
	case errors.Is(err, kgo.ErrClientClosed):
		return fmt.Errorf("kafka: %w", model.ErrClosed)
	case errors.As(err, &loss):
		return &GapError{r.o.Topic, r.o.Partition, loss.ResetTo, max(loss.ResetTo, r.next-1),
			"a broker lost records that were read, as after an unclean election of a leader; what was acknowledged after them may be lost too"}
	case errors.Is(err, kerr.OffsetOutOfRange):
		return r.outOfRange(ctx)
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.InconsistentTopicID), errors.Is(err, kerr.UnknownTopicOrPartition):
		if err := r.recorded(ctx); err != nil {
			return err
		}
	case errors.Is(err, kerr.CorruptMessage), damaged(err):
		return &PoisonError{r.o.Topic, r.o.Partition, r.next, err}
	}
	return fmt.Errorf("kafka: topic %s, partition %d: %w: reading from offset %d: %w", r.o.Topic, r.o.Partition, model.ErrTransient, r.next, err)
}

// damaged reports whether the client could not take a response apart. Such errors have no type.
func damaged(err error) bool {
	var large *kgo.ErrDecompressTooLarge
	if errors.As(err, &large) {
		return true
	}
	for _, begin := range []string{"encoded crc", "encoded length", "unable to read", "invalid record batch", "unknown batch magic", "unknown magic"} {
		if strings.HasPrefix(err.Error(), begin) {
			return true
		}
	}
	return false
}

// kept returns an error unless brokers still have the records before From, as they were read.
func (r *Reader) kept(ctx context.Context) error {
	end, err := epochEnd(ctx, r.client, r.o.Topic, r.o.Partition, *r.o.FromEpoch, -1)
	if err != nil || end >= r.next {
		return err
	}
	if end < 0 {
		return &GapError{r.o.Topic, r.o.Partition, r.next - 1, r.next - 1,
			fmt.Sprintf("brokers know nothing of leader %d of the partition, whose record was read: they have lost it, and may have lost others after it", *r.o.FromEpoch)}
	}
	return &GapError{r.o.Topic, r.o.Partition, end, r.next - 1,
		"brokers have lost records that were read, as in a power cut. Records that were acknowledged since have taken their offsets, and were not read"}
}

// outOfRange finds what is missing once Kafka has said that an offset is not there.
func (r *Reader) outOfRange(ctx context.Context) error {
	// Only this partition is asked for: the leaders of others may be away.
	all, err := extents(ctx, r.client, r.o.Topic, []int32{r.o.Partition})
	if err != nil {
		return err
	}
	if err := r.recorded(ctx); err != nil {
		return err
	}
	e := all[r.o.Partition]
	switch {
	case r.next < e.Start:
		return &GapError{r.o.Topic, r.o.Partition, r.next, e.Start - 1, fmt.Sprintf("the partition begins at offset %d: its retention, or an operator, has deleted what was before", e.Start)}
	case r.next > e.End:
		return &GapError{r.o.Topic, r.o.Partition, e.End, r.next - 1, fmt.Sprintf("the partition ends before offset %d: brokers have lost records that were read, and may have lost others after them", e.End)}
	}
	return &GapError{r.o.Topic, r.o.Partition, r.next - 1, r.next - 1, fmt.Sprintf("offset %d was out of range and is within %d to %d now: brokers have lost records that were read, and "+
		"others that took their offsets were not read", r.next, e.Start, e.End)}
}

// Close ends the reader.
func (r *Reader) Close() { r.client.Close() }
