package write

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/writetest"
)

const seed model.KeySeed = 9

// store is a head and a journal that remember what they were given.
type store struct {
	known   map[model.Key]bool
	batches []model.Batch
	err     error
}

func (s *store) Resolve(b *model.Batch, dst []uint32) ([]uint32, error) {
	for i, k := range b.Keys {
		if !s.known[k] {
			dst = append(dst, uint32(i))
		}
	}
	return dst, nil
}

func (s *store) Append(_ context.Context, b *model.Batch) error {
	if s.err != nil {
		return s.err
	}
	// The batch may be used again afterwards.
	c := model.Batch{Tenant: b.Tenant, Keys: slices.Clone(b.Keys)}
	for _, f := range model.Families() {
		from, to := b.Columns(f), c.Columns(f)
		to.AppendRows(&from.Rows, 0, from.Len())
		to.Ends = slices.Clone(from.Ends)
	}
	for i := range b.Labels.Len() {
		c.Labels.Append(b.Labels.Series[i], b.Labels.At(i))
	}
	s.batches = append(s.batches, c)
	return nil
}

// wire is a LabelSource of label pairs in the order in which they were sent.
type wire [][]string

func (w wire) BuildLabels(i int, b *model.LabelsBuilder) {
	for j := 0; j+1 < len(w[i]); j += 2 {
		b.Add([]byte(w[i][j]), []byte(w[i][j+1]))
	}
}

var now = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).UnixNano()

func newPath(s *store, l Limits) *Path {
	return New(Options{Seed: seed, Head: s, Journal: s, Limits: l, Now: func() int64 { return now }})
}

// send makes a batch of one row a series at the given ages.
func send(p *Path, w wire, ages ...time.Duration) *model.Batch {
	b := p.Batch("anonymous", model.Metrics)
	b.Source = w
	for i, pairs := range w {
		kb := model.KeyBuilder{Seed: seed, Signal: model.Metrics}
		for j := 0; j+1 < len(pairs); j += 2 {
			kb.Label([]byte(pairs[j]), []byte(pairs[j+1]))
		}
		b.AddSample(kb.Key(onWire(pairs)), now-int64(ages[i]), math.Float64bits(float64(i)))
	}
	return b
}

// onWire gives labels as a sender wrote them, in its order.
func onWire(pairs []string) (out []byte) {
	for j := 0; j+1 < len(pairs); j += 2 {
		out = append(out, model.LabelsOf(pairs[j], pairs[j+1])...)
	}
	return out
}

func TestPushLeavesOutWhatCannotBeStored(t *testing.T) {
	s := &store{}
	p := newPath(s, Limits{MaxAge: time.Hour, MaxFuture: time.Minute, MaxLabels: 2, MaxNameBytes: 10, MaxValueBytes: 5})
	b := send(p, wire{
		{"__name__", "ok"},
		{"__name__", "old"},
		{"__name__", "new"},
		{"__name__", "m", "a", "1", "b", "2"},
		{"__name__", "m", "a", "123456"},
		{"__name__", "m", "a2345678901", "1"},
		{"a", "1", "a", "2"},
		{},
		{"__name__", "\xff"},
		{"__name__", "ok2"},
	}, 0, 2*time.Hour, -2*time.Minute, 0, 0, 0, 0, 0, 0, time.Minute)
	res, err := p.Push(context.Background(), b)
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int)
	for _, r := range res.Rejected {
		counts[r.Reason] += r.Samples
		if len(r.Examples) == 0 {
			t.Errorf("%s: no example", r.Reason)
		}
	}
	want := map[string]int{
		ReasonTooOld: 1, ReasonTooNew: 1, ReasonTooManyLabels: 1, ReasonValueTooLong: 1, ReasonNameTooLong: 1,
		ReasonDuplicateLabel: 1, ReasonLabels: 2,
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Error(diff)
	}
	got := s.batches[0]
	if res.Stored != 2 || len(got.Keys) != 2 || got.Labels.Len() != 2 {
		t.Fatalf("stored %d rows of %d series with %d label sets, want 2 of each", res.Stored, len(got.Keys), got.Labels.Len())
	}
	for i, name := range []string{"ok", "ok2"} {
		if l := got.Labels.At(i); string(l.Get("__name__")) != name || got.Labels.Series[i] != uint32(i) || l.Key(seed, model.Metrics) != got.Keys[i] {
			t.Errorf("series %d: labels %s of series %d", i, l, got.Labels.Series[i])
		}
	}
	if got.Samples.Values[1] != math.Float64bits(9) {
		t.Errorf("the row of ok2 has the value %v", math.Float64frombits(got.Samples.Values[1]))
	}
}

// Labels in any order on the wire make the same series, which is recognised once it is known.
func TestPushCorrectsKeysOfUnorderedLabels(t *testing.T) {
	s := &store{known: make(map[model.Key]bool)}
	p := newPath(s, Limits{})
	unordered := wire{{"job", "j", "__name__", "m"}, {"__name__", "m", "empty", ""}}
	for _, known := range []bool{false, true} {
		if _, err := p.Push(context.Background(), send(p, unordered, 0, 0)); err != nil {
			t.Fatal(err)
		}
		got := s.batches[len(s.batches)-1]
		for i, l := range []model.Labels{model.LabelsOf("__name__", "m", "job", "j"), model.LabelsOf("__name__", "m")} {
			k := l.Key(seed, model.Metrics)
			if got.Keys[i] != k {
				t.Errorf("key %s, want %s of %s", got.Keys[i], k, l)
			}
			s.known[k] = true
		}
		if want := map[bool]int{false: 2, true: 0}[known]; got.Labels.Len() != want {
			t.Errorf("known %t: %d label sets travel, want %d", known, got.Labels.Len(), want)
		}
	}
}

// A batch whose push failed may be pushed again, also when some of its series have been left out.
func TestPushAgain(t *testing.T) {
	s := &store{err: fmt.Errorf("%w: disk full", model.ErrTransient)}
	p := newPath(s, Limits{MaxAge: time.Hour})
	b := send(p, wire{{"__name__", "old"}, {"__name__", "a"}, {"a", "1", "a", "2"}, {"job", "j", "__name__", "b"}}, 2*time.Hour, 0, 0, 0)
	for range 3 {
		if _, err := p.Push(context.Background(), b); err == nil {
			t.Fatal("no error")
		}
	}
	s.err = nil
	if res, err := p.Push(context.Background(), b); err != nil || res.Stored != 2 {
		t.Fatal(res, err)
	}
	got := s.batches[0]
	want := []model.Labels{model.LabelsOf("__name__", "a"), model.LabelsOf("__name__", "b", "job", "j")}
	if len(got.Keys) != 2 || got.Labels.Len() != 2 {
		t.Fatalf("%d series with %d label sets", len(got.Keys), got.Labels.Len())
	}
	for i, l := range want {
		if string(got.Labels.At(i)) != string(l) || got.Keys[i] != l.Key(seed, model.Metrics) || got.Samples.Values[i] != math.Float64bits(float64(2*i+1)) {
			t.Errorf("series %d is %s with the value %v", i, got.Labels.At(i), math.Float64frombits(got.Samples.Values[i]))
		}
	}
}

func TestPushErrors(t *testing.T) {
	s := &store{err: fmt.Errorf("%w: disk full", model.ErrTransient)}
	p := newPath(s, Limits{})
	_, err := p.Push(context.Background(), send(p, wire{{"__name__", "m"}}, 0))
	var r *Refused
	if !errors.As(err, &r) || r.Status != http.StatusServiceUnavailable || r.RetryAfter == 0 || !strings.Contains(r.Text, "disk full") {
		t.Errorf("got %#v", err)
	}
	if !errors.Is(err, model.ErrTransient) {
		t.Error("a refusal that may pass is not of class transient")
	}
}

func TestPushAllocatesNothingForKnownSeries(t *testing.T) {
	alloctest.Counts(t)
	s := &writetest.Known{}
	p := New(Options{Seed: seed, Head: s, Journal: s, Now: func() int64 { return now }})
	keys := make([]model.Key, 1000)
	ctx := context.Background()
	alloctest.AtMost(t, 1, 100, func() {
		b := p.Batch("anonymous", model.Metrics)
		for i := range keys {
			keys[i].Lo = uint64(i)
			b.AddSample(keys[i], now, 1)
		}
		if _, err := p.Push(ctx, b); err != nil {
			t.Fatal(err)
		}
		p.Recycle(b)
	})
}

func TestAdmission(t *testing.T) {
	p := newPath(&store{}, Limits{MaxInflightBytes: 100})
	ctx := context.Background()
	g, err := p.Admit(ctx, "t", 60)
	if err != nil {
		t.Fatal(err)
	}
	var r *Refused
	if _, err := p.Admit(ctx, "t", 60); !errors.As(err, &r) || r.Status != 503 || r.RetryAfter == 0 {
		t.Errorf("a full budget: %v", err)
	}
	if _, err := p.Admit(ctx, "t", 101); !errors.As(err, &r) || r.Status != 413 {
		t.Errorf("more than the whole budget: %v", err)
	}
	if _, err := p.Admit(ctx, "a/b", 1); !errors.As(err, &r) || r.Status != 400 {
		t.Errorf("bad tenant: %v", err)
	}
	if err := g.Grow(40); err != nil {
		t.Error(err)
	}
	waiting := make(chan error)
	go func() {
		g, err := p.AdmitWait(ctx, "t", 50)
		if err == nil {
			g.Release()
		}
		waiting <- err
	}()
	for p.waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	gone, cancel := context.WithCancel(ctx)
	go func() {
		_, err := p.AdmitWait(gone, "t", 1)
		waiting <- err
	}()
	for p.waiting() == 1 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("a waiter that was cancelled: %v", err)
	}
	g.Release()
	g.Release()
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	if used := p.budget.inUse(); used != 0 {
		t.Errorf("%d bytes are still in use", used)
	}
}

func (p *Path) waiting() int {
	p.budget.mu.Lock()
	defer p.budget.mu.Unlock()
	return len(p.budget.waiters)
}
