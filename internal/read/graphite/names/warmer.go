package names

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
)

const (
	// refreshEvery is how often the parts of tenants that ask are looked at: flushes, merges and ships make
	// new ones.
	refreshEvery = 15 * time.Second
	// idleAfter is how long after its last query a tenant is forgotten.
	idleAfter = 30 * time.Minute
	// unfitFor is how long nothing is made for a tenant whose index the cache did not keep.
	unfitFor = 10 * time.Minute
	// maxWarmed bounds the tenants that are kept warm.
	maxWarmed = 1000
)

// warmer makes the indexes of the names that queries ask for, one after the other, so that no query waits for
// one: a query without an index scans.
type warmer struct {
	f       *Finder
	quota   func() *model.Quota
	mu      sync.Mutex
	tenants map[string]*warmed
	wake    chan struct{}
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// warmed is a tenant that asks for names.
type warmed struct {
	oldest int64 // begin of the widest range
	asked  time.Time
	unfit  time.Time
	due    bool // a query has scanned
}

func newWarmer(f *Finder, quota func() *model.Quota) *warmer {
	ctx, cancel := context.WithCancel(context.Background())
	w := &warmer{f: f, quota: quota, tenants: make(map[string]*warmed), wake: make(chan struct{}, 1), cancel: cancel}
	w.done.Go(func() { w.run(ctx) })
	return w
}

func (w *warmer) close() {
	w.cancel()
	w.done.Wait()
}

// want notes that a query has looked for names from a time on. scanned says that it had to scan many.
func (w *warmer) want(tenant string, oldest int64, scanned bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tenants[tenant]
	if t == nil {
		if len(w.tenants) >= maxWarmed {
			return
		}
		t = &warmed{oldest: oldest}
		w.tenants[tenant] = t
	}
	t.oldest, t.asked = min(t.oldest, oldest), time.Now()
	if scanned {
		t.due = true
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

func (w *warmer) run(ctx context.Context) {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	for {
		all := false
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-tick.C:
			all = true
		}
		for tenant, oldest := range w.due(all) {
			kept := false
			err := model.Caught(func() (err error) {
				kept, err = w.warm(ctx, tenant, oldest)
				return err
			})
			stack := model.StackOf(err)
			if stack != "" {
				w.f.metrics.failures.Inc()
				w.f.o.Logger.Error("cannot make an index of Graphite names; trying again in ten minutes", "tenant", tenant, "err", err, "stack", stack)
			}
			if err == nil && !kept || stack != "" || errors.Is(err, model.ErrLimit) || errors.Is(err, model.ErrTransient) {
				w.refuse(tenant)
			}
		}
	}
}

// due returns the tenants to warm, with the beginnings of their ranges.
func (w *warmer) due(all bool) map[string]int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make(map[string]int64)
	now := time.Now()
	for tenant, t := range w.tenants {
		switch {
		case now.Sub(t.asked) > idleAfter:
			delete(w.tenants, tenant)
		case now.Before(t.unfit):
		case all || t.due:
			out[tenant] = t.oldest
		}
		t.due = false
	}
	return out
}

func (w *warmer) refuse(tenant string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.tenants[tenant]; t != nil {
		t.unfit = time.Now().Add(unfitFor)
	}
}

// warm makes the indexes that a tenant lacks, and reports whether the cache kept them.
func (w *warmer) warm(ctx context.Context, tenant string, oldest int64) (kept bool, err error) {
	q := Query{Tenant: tenant, Range: model.TimeRange{Min: oldest, Max: time.Now().UnixNano()}, Quota: w.quota()}
	defer q.Quota.Release()
	r := w.f.request(&q)
	sets, release, err := w.f.o.From.Names(ctx, r)
	if err != nil {
		return false, err
	}
	defer release()
	for _, s := range sets {
		t := treeOf(ctx, s, q.Quota)
		if t.err != nil {
			return false, t.err
		}
		if t.index != nil || s.Walk(ctx) == nil {
			continue
		}
		if _, err := s.Made(ctx, func(ctx context.Context) ([]byte, error) { return w.f.build(ctx, r, s) }); err != nil {
			return false, err
		}
		if made, err := s.Made(ctx, nil); err != nil || made == nil {
			return false, err
		}
	}
	return true, nil
}
