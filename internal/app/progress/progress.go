package progress

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/remote"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/topics"
)

// The rooms fit.
var _ remote.Log = (*Log)(nil)

// Options build a Log. Zero values take the defaults that are named.
type Options struct {
	Connection kafka.Connection
	// Epochs are those that Bucket records. Later ones are noticed.
	Epochs  []topics.Epoch
	Bucket  bucket.Bucket
	Catalog *catalog.Catalog
	// EndsEvery is how often Kafka is asked for the ends of partitions (1 s), and ShipsEvery how often the
	// bucket is for ships (5 s). ListEvery is how often the catalogue is listed (30 s), which finds merges.
	EndsEvery, ShipsEvery, ListEvery time.Duration
	// Ask bounds one question to Kafka (5 s).
	Ask    time.Duration
	Logger *slog.Logger
}

// Log is a [remote.Log] over Kafka and the log of ships. It is safe for concurrent use.
type Log struct {
	o       Options
	client  asker
	running context.Context // until Close
	stop    context.CancelFunc
	done    sync.WaitGroup
	asking  sync.Mutex // held by the question of queries that is asked

	mu     sync.Mutex
	epochs []topics.Epoch
	ends   map[partition]int64 // offsets after the last records
	asked  time.Time           // when the question was sent that ends answers
	failed error               // of the last question; nil: it was answered
	sent   time.Time           // when the last question was sent that failed
	next   *question           // of queries, which is not asked yet; nil: there is none
	// recorded has the epochs that were given up and are closed: the catalogue has what was lost of them.
	recorded map[uint64]bool
}

// asker is a [kafka.Asker], except in tests.
type asker interface {
	Ends(ctx context.Context, topic string, partitions int32) (map[int32]int64, error)
	Close()
}

// partition is a partition of an epoch.
type partition struct {
	epoch uint64
	n     int32
}

// Open starts to follow the partitions.
func Open(ctx context.Context, o Options) (*Log, error) {
	for _, d := range []struct {
		is      *time.Duration
		usually time.Duration
	}{{&o.EndsEvery, time.Second}, {&o.ShipsEvery, 5 * time.Second}, {&o.ListEvery, 30 * time.Second}, {&o.Ask, 5 * time.Second}} {
		if *d.is <= 0 {
			*d.is = d.usually
		}
	}
	client, err := kafka.NewAsker(o.Connection)
	if err != nil {
		return nil, err
	}
	l := &Log{o: o, client: client, epochs: o.Epochs}
	if err := l.ask(ctx); err != nil {
		o.Logger.Warn("cannot ask Kafka for the ends of partitions; queries that depend on them are refused", "err", err)
	}
	running, stop := context.WithCancel(context.Background())
	l.running, l.stop = running, stop
	l.every(running, o.EndsEvery, "the ends of partitions", l.ask)
	l.every(running, o.ShipsEvery, "the log of ships", o.Catalog.Poll)
	l.every(running, o.ListEvery, "the catalogue", o.Catalog.Refresh)
	return l, nil
}

// every calls do each interval, and logs the first error in a row.
func (l *Log) every(ctx context.Context, interval time.Duration, what string, do func(context.Context) error) {
	l.done.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		failing := false
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			err := do(ctx)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil && !failing:
				l.o.Logger.Warn("cannot read "+what+"; trying again", "err", err)
			case err == nil && failing:
				l.o.Logger.Info("reading " + what + " again")
			}
			failing = err != nil
		}
	})
}

// later looks for later topics. More than one may have followed while this process slept.
func (l *Log) later(ctx context.Context) error {
	for {
		l.mu.Lock()
		known := l.epochs
		l.mu.Unlock()
		next, err := topics.Next(ctx, l.o.Bucket, uint64(len(known)))
		if err != nil || next == nil {
			return err
		}
		l.mu.Lock()
		if len(l.epochs) == len(known) { // others look, too
			l.epochs = append(known[:len(known):len(known)], *next)
		}
		l.mu.Unlock()
	}
}

// Writes returns the epoch that takes writes. While partitions of an earlier one are not closed, it returns
// an error of class transient: then nothing that follows all acknowledged rows can be appended.
func (l *Log) Writes(ctx context.Context) (*topics.Epoch, error) {
	if err := l.later(ctx); err != nil {
		return nil, err
	}
	if err := l.o.Catalog.Poll(ctx); err != nil {
		return nil, err
	}
	open := l.open()
	l.mu.Lock()
	last := topics.Latest(l.epochs)
	l.mu.Unlock()
	for i := range open {
		if open[i].Number < last.Number {
			return nil, fmt.Errorf("%w: topic %s has followed topic %s, whose records are not all in the bucket yet; try again in some seconds", model.ErrTransient, last.Topic, open[i].Topic)
		}
	}
	return last, nil
}

// GivenUp reports whether an operator has given up what was not shipped of an epoch.
func (l *Log) GivenUp(epoch uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return givenUp(l.epochs, epoch)
}

func givenUp(all []topics.Epoch, epoch uint64) bool {
	return epoch > 0 && epoch < uint64(len(all)) && all[epoch].BeforeLost
}

// Lost returns what an operator has given up with the topics of earlier epochs, as long as no ingester has
// recorded that. The catalogue is asked without the lock: it calls [Log.GivenUp] under its own.
func (l *Log) Lost() (lost []catalog.GivenUp) {
	l.mu.Lock()
	all, recorded := l.epochs, l.recorded
	l.mu.Unlock()
	for i := range all {
		e := &all[i]
		if !givenUp(all, e.Number) || recorded[e.Number] {
			continue
		}
		before := len(lost)
		for p := range e.Partitions {
			if at := l.o.Catalog.Covered(topics.Node(p), e.Number); !at.Closed {
				lost = append(lost, catalog.GivenUp{Skip: topics.Lost(&at), After: at.Appended, Before: all[i+1].Begun})
			}
		}
		if len(lost) == before { // each query asks, and what is closed stays closed
			l.record(e.Number)
		}
	}
	return lost
}

// record notes that ingesters have recorded all that was given up of an epoch. Readers have the map of
// before.
func (l *Log) record(epoch uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	recorded := map[uint64]bool{epoch: true}
	maps.Copy(recorded, l.recorded)
	l.recorded = recorded
}

// open returns the epochs whose partitions may have rows that the bucket has not.
func (l *Log) open() []topics.Epoch {
	l.mu.Lock()
	all := l.epochs
	l.mu.Unlock()
	var open []topics.Epoch
	for i := range all {
		if givenUp(all, all[i].Number) {
			continue
		}
		for p := range all[i].Partitions {
			if !l.o.Catalog.Covered(topics.Node(p), all[i].Number).Closed {
				open = append(open, all[i])
				break
			}
		}
	}
	return open
}

// ask asks Kafka for the ends of all partitions, after it has asked the bucket whether another topic takes
// writes: what that one has acknowledged would be missed.
func (l *Log) ask(ctx context.Context) error {
	_, err := l.endsNow(ctx)
	return err
}

// endsNow is ask, and returns its own answer: a question that was sent before may be answered after this one.
func (l *Log) endsNow(ctx context.Context) (map[partition]int64, error) {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, l.o.Ask)
	defer cancel()
	err := l.later(ctx)
	ends := map[partition]int64{}
	l.mu.Lock()
	known := l.epochs
	l.mu.Unlock()
	for _, e := range l.open() {
		if _, ended := topics.End(known, e.Number, 0); ended { // the topic may be gone
			for n := range e.Partitions {
				ends[partition{e.Number, n}], _ = topics.End(known, e.Number, n)
			}
			continue
		}
		if err != nil {
			break
		}
		var found map[int32]int64
		if found, err = l.client.Ends(ctx, e.Topic, e.Partitions); err != nil {
			break
		}
		for n, end := range found {
			ends[partition{e.Number, n}] = end
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if asked.After(l.sent) {
			l.failed, l.sent = err, asked
		}
		return ends, err
	}
	if asked.After(l.asked) {
		l.ends, l.asked = ends, asked
	}
	if asked.After(l.sent) {
		l.failed = nil
	}
	return ends, nil
}

// endsFor is for how long an answer of Kafka counts: without a holder of a partition, what was acknowledged
// since would be missed.
const endsFor = 2 * time.Second

// Journals is [remote.Log.Journals]. It returns those of all epochs, also closed ones: holders may not have
// heard of that. If Kafka does not answer, the ends are not known, and only what needs
// them is refused.
func (l *Log) Journals(ctx context.Context, fresh bool) ([]remote.Progress, error) {
	var q *question
	if fresh {
		var err error
		if q, err = l.refresh(ctx); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	epochs, ends, failed := l.epochs, l.ends, l.failed
	if age := time.Since(l.asked); failed == nil && age > endsFor {
		failed = fmt.Errorf("%w: Kafka has not said for %s where partitions end", model.ErrTransient, age.Round(time.Second))
	}
	if failed != nil && time.Since(l.asked) <= endsFor {
		failed = nil // one failed question does not make the last answer wrong
	}
	l.mu.Unlock()
	if q != nil {
		ends, failed = q.ends, q.failed
	}
	var all []remote.Progress
	for i := range epochs {
		e := &epochs[i]
		for n := range e.Partitions {
			at := l.o.Catalog.Covered(topics.Node(n), e.Number)
			covered := max(at.To, uint64(e.Begins[n]))
			p := remote.Progress{Node: topics.Node(n), Epoch: e.Number, Covered: covered, End: covered, Unknown: failed}
			if at.Closed || givenUp(epochs, e.Number) {
				p.Unknown, p.Closed = nil, true
				all = append(all, p)
				continue
			}
			if end, ok := ends[partition{e.Number, n}]; ok {
				p.End = max(covered, uint64(end)) // the sequence number of the record before
			} else if failed == nil {
				p.Unknown = fmt.Errorf("%w: Kafka has not been asked yet where %s of epoch %d ends", model.ErrTransient, p.Node, p.Epoch)
			}
			all = append(all, p)
		}
	}
	return all, nil
}

// Close ends the following.
func (l *Log) Close() {
	l.mu.Lock()
	l.stop() // no more questions begin
	l.mu.Unlock()
	l.done.Wait()
	l.client.Close()
}
