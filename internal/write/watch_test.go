package write

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/writetest"
)

func TestWatch(t *testing.T) {
	s := &store{known: make(map[model.Key]bool)}
	p := newPath(s, Limits{})
	ctx := context.Background()
	var seen []string
	cancel := p.Watch(func(b *model.Batch) {
		if len(s.batches) == 0 {
			t.Error("seen before it is durable")
		}
		for i := range b.Keys {
			var lb model.LabelsBuilder
			b.BuildLabels(i, &lb)
			l, err := lb.Append(nil)
			if err != nil || model.Labels(l).Key(seed, b.Signal) != b.Keys[i] {
				t.Error("labels that are not those of the key", err)
			}
			for r := b.Text.Begin(i); r < b.Text.End(i); r++ {
				line, err := model.SplitLine(b.Text.Blob(int(r)))
				if err != nil {
					t.Error(err)
				}
				seen = append(seen, b.Tenant+model.Labels(l).String()+string(line.Text))
			}
		}
	})
	w := wire{{"app", "a"}, {"b", "2", "a", "1"}}
	for range 2 { // once new, once known
		if _, err := p.Push(ctx, logs(p, "t", w, 0, 0)); err != nil {
			t.Fatal(err)
		}
		for _, k := range s.batches[0].Keys {
			s.known[k] = true
		}
	}
	once := []string{`t{app="a"}first`, `t{app="a"}second line`, `t{a="1", b="2"}first`, `t{a="1", b="2"}second line`}
	if diff := cmp.Diff(append(once, once...), seen); diff != "" {
		t.Error(diff)
	}
	seen = nil
	s.err = model.ErrTransient
	if _, err := p.Push(ctx, logs(p, "t", w, 0, 0)); err == nil || seen != nil {
		t.Errorf("%v is seen of what failed: %v", seen, err)
	}
	s.err = nil
	cancel()
	cancel()
	if _, err := p.Push(ctx, logs(p, "t", w, 0, 0)); err != nil || seen != nil {
		t.Errorf("%v is seen after the end: %v", seen, err)
	}
}

// What is stored before the rest may be created is shown too, with its labels.
func TestWatchSeesPieces(t *testing.T) {
	s := &throttled{store: store{known: make(map[model.Key]bool)}, allow: 1}
	p := New(Options{Seed: seed, Head: s, Journal: s, Now: func() int64 { return now }})
	var seen []string
	defer p.Watch(func(b *model.Batch) {
		for i := range b.Keys {
			var lb model.LabelsBuilder
			b.BuildLabels(i, &lb)
			l, _ := lb.Append(nil)
			seen = append(seen, model.Labels(l).String())
		}
	})()
	w := wire{{"app", "a"}, {"app", "b"}, {"app", "c"}}
	if _, err := p.Push(context.Background(), logs(p, "t", w, 0, 0, 0)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`{app="a"}`, `{app="b"}`, `{app="c"}`}, seen); diff != "" {
		t.Error(diff)
	}
}

// throttled lets a few series be created at a time.
type throttled struct {
	store
	allow int
}

func (s *throttled) Create(_ string, n int) (int, error) {
	if n > s.allow {
		return s.allow, model.ErrTransient
	}
	return n, nil
}

func (s *throttled) Await(context.Context, error) bool { return true }

func TestWatchersComeAndGo(t *testing.T) {
	p := New(Options{Seed: seed, Head: writetest.Known{}, Journal: writetest.Known{}, Now: func() int64 { return now }})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				var calls atomic.Int64
				cancel := p.Watch(func(*model.Batch) { calls.Add(1) })
				b := p.Batch("t", model.Metrics)
				b.AddSample(model.Key{Lo: 1}, now, 1)
				if _, err := p.Push(context.Background(), b); err != nil {
					t.Error(err)
				}
				cancel()
				n := calls.Load()
				if n == 0 {
					t.Error("not shown")
				}
				p.watchers.notify(b)
				if calls.Load() != n {
					t.Error("shown after the end")
				}
			}
		})
	}
	wg.Wait()
	if p.watchers.list.Load() != nil {
		t.Error("watchers are left")
	}
	alloctest.AtMost(t, 0, 100, func() { p.watchers.notify(nil) })
}
