package families

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/metadata"
)

const (
	// readEvery is how often the bucket is listed.
	readEvery = 10 * time.Second
	// staleAfter is how old the last listing is with which answers get a warning.
	staleAfter = 5 * time.Minute
)

// ReaderOptions build a Reader.
type ReaderOptions struct {
	Bucket     bucket.Bucket
	Limits     metadata.Limits
	Every      time.Duration // 0: readEvery
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// Reader knows what all writers have written. It is safe for concurrent use.
type Reader struct {
	o      ReaderOptions
	merged atomic.Pointer[merged]
	// read has what was read of each object; only run uses it.
	read   map[object][]metadata.Described
	stop   context.CancelFunc
	done   sync.WaitGroup
	errors prometheus.Counter
}

// merged is what a listing found.
type merged struct {
	*metadata.Map
	at time.Time // of the listing
	// unread names objects that cannot be read.
	unread error
}

// OpenReader begins to read.
func OpenReader(ctx context.Context, o ReaderOptions) *Reader {
	if o.Every <= 0 {
		o.Every = readEvery
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Reader{o: o, read: map[object][]metadata.Described{}}
	f := promauto.With(o.Registerer)
	r.errors = f.NewCounter(prometheus.CounterOpts{Name: "shale_families_read_errors_total", Help: "Failed attempts to read the descriptions of metric families from the bucket."})
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_families_read", Help: "Metric families that the bucket has descriptions of."}, func() (n float64) {
		if m := r.merged.Load(); m != nil {
			families, _ := m.Usage()
			n = float64(families)
		}
		return n
	})
	r.refresh(ctx)
	running, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.done.Go(func() {
		tick := time.NewTicker(o.Every)
		defer tick.Stop()
		for {
			select {
			case <-running.Done():
				return
			case <-tick.C:
			}
			// It stores what it has read at its end, so that a panic leaves what was there.
			if err := model.Caught(func() error { r.refresh(running); return nil }); err != nil {
				r.errors.Inc()
				r.o.Logger.Error("cannot read the descriptions of metric families; trying again", "err", err, "stack", model.StackOf(err))
			}
		}
	})
	return r
}

// Close ends the reading.
func (r *Reader) Close() {
	r.stop()
	r.done.Wait()
}

// refresh reads what is new.
func (r *Reader) refresh(ctx context.Context) {
	at := time.Now()
	last, _, err := list(ctx, r.o.Bucket)
	var unread error
	changed := r.merged.Load() == nil
	read := map[object][]metadata.Described{}
	for _, o := range last {
		if have, ok := r.read[o]; ok {
			read[o] = have
			continue
		}
		_, all, found, e := load(ctx, r.o.Bucket, o)
		if e == nil && !found { // its successor comes with the next listing
			for before, have := range r.read {
				if before.writer == o.writer {
					read[before] = have
				}
			}
			continue
		}
		unread = errors.Join(unread, e)
		if e == nil {
			read[o], changed = all, true
		}
	}
	if err := errors.Join(err, unread); err != nil && ctx.Err() == nil {
		r.errors.Inc()
		r.o.Logger.Warn("cannot read all descriptions of metric families; trying again", "err", err)
	}
	if err != nil {
		return
	}
	changed = changed || len(read) != len(r.read)
	r.read = read
	next := &merged{at: at, unread: unread}
	if before := r.merged.Load(); changed {
		next.Map = metadata.New(r.o.Limits)
		for _, all := range read {
			for i := range all {
				_ = next.Adopt(&all[i]) // what exceeds a limit is left out, as in a head
			}
		}
	} else {
		next.Map = before.Map
	}
	r.merged.Store(next)
}

// Metadata emits the description of a family, or of all families of a tenant in the order of their names if
// the family is empty, until emit returns false. warning is not empty if some may be missing. It fails with
// class transient if the bucket was never read.
func (r *Reader) Metadata(tenant, family string, emit func(family string, m model.Metadata) bool) (warning string, err error) {
	m := r.merged.Load()
	if m == nil {
		return "", fmt.Errorf("%w: the descriptions of metric families were not read from the bucket yet", model.ErrTransient)
	}
	m.Each(tenant, family, emit)
	switch age := time.Since(m.at); {
	case m.unread != nil:
		warning = fmt.Sprintf("descriptions of metric families may be missing: %v", m.unread)
	case age > staleAfter:
		warning = fmt.Sprintf("descriptions of metric families are those of %s ago, because the bucket cannot be read", age.Round(time.Second))
	}
	return warning, nil
}
