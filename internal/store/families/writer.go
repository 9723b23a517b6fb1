package families

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/metadata"
)

// The times of a Writer.
const (
	// saveEvery is the least time between objects. Senders that disagree about a family change it all the time.
	saveEvery = 5 * time.Second
	// tidyEvery is how often an object is written that has not changed, and those of others are looked at.
	tidyEvery = time.Hour
	// goneAfter is how old the object of a writer is that counts as gone: a day of its being unable to write.
	goneAfter = 24 * time.Hour
	// lastSave bounds the last attempt to write.
	lastSave = 10 * time.Second
)

// WriterOptions build a Writer.
type WriterOptions struct {
	Bucket     bucket.Bucket
	Limits     metadata.Limits
	Now        func() int64  // Unix nanoseconds; nil: the clock
	Every      time.Duration // 0: saveEvery
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// Writer keeps what senders say of metric families. It is safe for concurrent use.
type Writer struct {
	o       WriterOptions
	m       *metadata.Map
	own     object // of the last attempt to write
	stored  uint64 // the number of the last attempt that was successful; 0: none was
	tidied  time.Time
	stop    context.CancelFunc
	done    sync.WaitGroup
	errors  prometheus.Counter
	written prometheus.Counter
}

// OpenWriter takes over what the bucket has, and begins to write.
func OpenWriter(ctx context.Context, o WriterOptions) (*Writer, error) {
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	if o.Every <= 0 {
		o.Every = saveEvery
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	w := &Writer{o: o, m: metadata.New(o.Limits), own: object{writer: rand.Text()}, tidied: time.Now()}
	f := promauto.With(o.Registerer)
	w.written = f.NewCounter(prometheus.CounterOpts{Name: "shale_families_written_total", Help: "Objects with descriptions of metric families that this gateway has written."})
	w.errors = f.NewCounter(prometheus.CounterOpts{Name: "shale_families_write_errors_total", Help: "Failed attempts to write descriptions of metric families to the bucket, or to read those of other gateways."})
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_families_known", Help: "Metric families that this gateway has descriptions of."}, func() float64 {
		n, _ := w.m.Usage()
		return float64(n)
	})
	if _, err := w.adopt(ctx, 0); err != nil {
		return nil, err
	}
	w.m.TakeChanged(true) // the bucket has it
	running, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.done.Go(func() { w.run(running) })
	return w, nil
}

// PutMetadata keeps the description of a family. Errors: class invalid for texts that are too long, a
// [model.LimitError] when there is no room.
func (w *Writer) PutMetadata(tenant, family string, m model.Metadata) error {
	if len(family)+len(m.Type)+len(m.Help)+len(m.Unit) > metadata.MaxTextBytes {
		return fmt.Errorf("%w: metadata of %.100q exceeds the limit of %d bytes", model.ErrInvalid, family, metadata.MaxTextBytes)
	}
	return w.m.Put(tenant, family, m, w.o.Now())
}

func (w *Writer) run(ctx context.Context) {
	tick := time.NewTicker(w.o.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := model.Caught(func() error { return w.work(ctx) })
		log := w.o.Logger
		if stack := model.StackOf(err); stack != "" {
			w.m.Touch() // what was taken to be written may not have been
			log = log.With("stack", stack)
		}
		if err != nil && ctx.Err() == nil {
			w.errors.Inc()
			log.Warn("cannot write the descriptions of metric families to the bucket; trying again", "err", err)
		}
	}
}

// work writes what has changed and, now and then, tidies.
func (w *Writer) work(ctx context.Context) error {
	due := time.Since(w.tidied) >= tidyEvery
	err := w.save(ctx, due)
	if due && err == nil {
		err = w.tidy(ctx)
	}
	return err
}

// save writes an object if something has changed, and deletes the one before.
func (w *Writer) save(ctx context.Context, always bool) error {
	all := w.m.TakeChanged(always)
	if len(all) == 0 {
		return nil
	}
	// Each attempt has its own number: one that has failed may have written its object, and readers read an
	// object once. What such attempts leave, tidy deletes.
	w.own.number++
	data, err := encode(all, w.o.Now())
	if err == nil {
		err = w.o.Bucket.Put(ctx, w.own.name(), bytes.NewReader(data), int64(len(data)))
	}
	if err != nil {
		w.m.Touch()
		return fmt.Errorf("%s: %w", w.own.name(), err)
	}
	w.written.Inc()
	before := object{w.own.writer, w.stored}
	if w.stored = w.own.number; before.number == 0 {
		return nil
	}
	return w.o.Bucket.Delete(ctx, before.name())
}

// adopt takes over what objects of other writers have that were not written after a time; 0: of all. It
// returns their names. Objects that cannot be decoded are left alone.
func (w *Writer) adopt(ctx context.Context, before int64) (all []object, err error) {
	last, _, err := list(ctx, w.o.Bucket)
	if err != nil {
		return nil, err
	}
	for _, o := range last {
		if o.writer == w.own.writer {
			continue
		}
		written, families, found, err := load(ctx, w.o.Bucket, o)
		switch {
		case errors.Is(err, model.ErrCorrupt), errors.Is(err, model.ErrInvalid):
			w.o.Logger.Error("skipping descriptions of metric families that cannot be read", "object", o.name(), "err", err)
			continue
		case err != nil:
			return nil, err
		case !found || before != 0 && written > before:
			continue
		}
		for i := range families {
			_ = w.m.Adopt(&families[i]) // what exceeds a limit is dropped, as when it is told
		}
		all = append(all, o)
	}
	return all, nil
}

// tidy takes over the objects of writers that are gone, and deletes them and those that have successors.
func (w *Writer) tidy(ctx context.Context) error {
	gone, err := w.adopt(ctx, w.o.Now()-int64(goneAfter))
	if err != nil {
		return err
	}
	if err := w.save(ctx, len(gone) > 0); err != nil {
		return err
	}
	_, old, err := list(ctx, w.o.Bucket)
	if err != nil {
		return err
	}
	for _, o := range append(gone, old...) {
		if err := w.o.Bucket.Delete(ctx, o.name()); err != nil {
			return fmt.Errorf("%s: %w", o.name(), err)
		}
	}
	w.tidied = time.Now()
	return nil
}

// Close writes what has changed.
func (w *Writer) Close() error {
	w.stop()
	w.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), lastSave)
	defer cancel()
	return w.save(ctx, false)
}
