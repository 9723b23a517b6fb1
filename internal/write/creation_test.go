package write

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shaledb/shale/internal/model"
)

// strict is a store that lets only so many series be created in each push.
type strict struct {
	store
	allowed int
	// waits is how often Await lets one more series be created each time.
	waits int
}

func (s *strict) Create(_ string, n int) (int, error) {
	if n <= s.allowed {
		return n, nil
	}
	return s.allowed, &model.LimitError{Limit: "limits.new-series", Text: fmt.Sprintf("%d new series", n)}
}

func (s *strict) Await(context.Context, error) bool {
	if s.waits == 0 {
		return false
	}
	s.waits--
	s.allowed++
	return true
}

// learn makes every series known whose labels have been stored.
func (s *strict) learn() {
	for _, b := range s.batches {
		for _, i := range b.Labels.Series {
			s.known[b.Keys[i]] = true
		}
	}
}

// TestKnownSeriesAreStoredThoughNewOnesWait pushes a batch repeatedly, as receivers do, while creation
// is held back. Known series are stored at once, each row is stored once, and in the end nothing is
// left.
func TestKnownSeriesAreStoredThoughNewOnesWait(t *testing.T) {
	s := &strict{store: store{known: make(map[model.Key]bool)}, allowed: 2}
	p := New(Options{Seed: seed, Head: s, Journal: s, Now: func() int64 { return now }})
	b := send(p, wire{{"__name__", "known"}, {"__name__", "a"}, {"__name__", "b"}, {"job", "j", "__name__", "c"}, {"__name__", "d"}, {"a", "1", "a", "2"}}, 0, 0, 0, 0, 0, 0)
	b.Exemplars.AppendBlob(now, model.KindExemplar, model.AppendExemplar(nil, &model.Exemplar{Value: 7}), 0)
	b.EndSeries(b.Keys[4])
	b.Source = wire{{"__name__", "known"}, {"__name__", "a"}, {"__name__", "b"}, {"job", "j", "__name__", "c"}, {"__name__", "d"}, {"a", "1", "a", "2"}, {"__name__", "d"}}
	s.known[b.Keys[0]] = true

	s.err = fmt.Errorf("%w: disk full", model.ErrTransient)
	if res, err := p.Push(context.Background(), b); !errors.Is(err, model.ErrTransient) || res.Stored != 0 {
		t.Fatal(res, err)
	}
	s.err = nil
	var stored []Counts
	for range 10 {
		res, err := p.Push(context.Background(), b)
		stored = append(stored, res.ByKind)
		s.learn()
		if err == nil {
			break
		}
		var r *Refused
		if !errors.As(err, &r) || r.Status != 503 || r.Limit != "limits.new-series" || r.RetryAfter == 0 {
			t.Fatalf("%#v", err)
		}
	}
	// First the known one and two new ones; then two more rows of new series, which are the last.
	if diff := cmp.Diff([]Counts{{Samples: 3}, {Samples: 2}, {Exemplars: 1}}, stored); diff != "" {
		t.Fatal(diff)
	}
	rows := map[string]int{}
	for _, batch := range s.batches {
		for i, k := range batch.Keys {
			for j := batch.Samples.Begin(i); j < batch.Samples.End(i); j++ {
				rows[fmt.Sprint(k, math.Float64frombits(batch.Samples.Values[j]))]++
			}
		}
	}
	if len(rows) != 5 {
		t.Errorf("stored %v", rows)
	}
	for row, n := range rows {
		if n != 1 {
			t.Errorf("%s is stored %d times", row, n)
		}
	}
}

// TestAllNewAndNoneAllowed stores nothing and says so.
func TestAllNewAndNoneAllowed(t *testing.T) {
	s := &strict{store: store{known: make(map[model.Key]bool)}}
	p := New(Options{Seed: seed, Head: s, Journal: s, Now: func() int64 { return now }})
	b := send(p, wire{{"__name__", "a"}, {"__name__", "b"}}, 0, 0)
	if res, err := p.Push(context.Background(), b); !errors.Is(err, model.ErrTransient) || res.Stored != 0 || len(s.batches) != 0 || b.Rows() != 2 {
		t.Fatal(res, err, b.Rows())
	}
}

// TestNewSeriesAwaitRoom: a push waits for room a few times, and stores each row once.
func TestNewSeriesAwaitRoom(t *testing.T) {
	for waits, want := range map[int]int{1: 2, 2: 4, 9: 4} {
		s := &strict{store: store{known: make(map[model.Key]bool)}, waits: waits}
		p := New(Options{Seed: seed, Head: s, Journal: s, Now: func() int64 { return now }})
		b := send(p, wire{{"__name__", "known"}, {"__name__", "a"}, {"__name__", "b"}, {"__name__", "c"}}, 0, 0, 0, 0)
		s.known[b.Keys[0]] = true
		res, err := p.Push(context.Background(), b)
		if res.Stored != want || (err == nil) != (want == 4) {
			t.Errorf("%d waits: %d rows are stored, want %d; %v", waits, res.Stored, want, err)
		}
		rows := 0
		for _, batch := range s.batches {
			rows += len(batch.Keys)
			if rows == len(batch.Keys) && (rows != 1 || batch.Labels.Len() != 0) {
				t.Errorf("%d series are stored first, of which %d are new", rows, batch.Labels.Len())
			}
		}
		if rows != want {
			t.Errorf("%d waits: %d series in the journal", waits, rows)
		}
	}
}

// TestWaitingLeavesMemory: new series wait only while half of the memory of requests is free for others.
func TestWaitingLeavesMemory(t *testing.T) {
	s := &strict{store: store{known: make(map[model.Key]bool)}, waits: 9}
	p := New(Options{Seed: seed, Head: s, Journal: s, Limits: Limits{MaxInflightBytes: 1000}, Now: func() int64 { return now }})
	b := send(p, wire{{"__name__", "a"}}, 0)
	grant, err := p.Admit(context.Background(), "t", 501)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := p.Push(context.Background(), b); !errors.Is(err, model.ErrTransient) || res.Stored != 0 || s.waits != 9 {
		t.Fatalf("%d rows, %v; %d waits are left", res.Stored, err, s.waits)
	}
	grant.Release()
	if res, err := p.Push(context.Background(), b); err != nil || res.Stored != 1 || s.waits != 8 {
		t.Fatalf("%d rows, %v; %d waits are left", res.Stored, err, s.waits)
	}
}
