package write

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// granted is a source that reserves memory of the path.
type granted struct {
	wire
	grant *Grant
}

func (g granted) Reserve(bytes int64) error { return g.grant.Grow(bytes) }

// fullTenant is a store of a tenant that may have one more series. Its journal fails once, after so many
// batches.
type fullTenant struct {
	strict
	fails int
}

func (s *fullTenant) Create(string, int) (int, error) {
	return 1, &model.LimitError{Limit: "limits.tenant-series", Tenant: true, Text: "the tenant has its series"}
}

func (s *fullTenant) Append(ctx context.Context, b *model.Batch) error {
	if s.fails--; s.fails == 0 {
		return fmt.Errorf("%w: the disk", model.ErrTransient)
	}
	return s.store.Append(ctx, b)
}

// TestKnownSeriesAreStoredWithoutMemoryForACopy: where a request leaves no memory for a copy of its rows,
// those of series that may be stored are stored in portions, each once. The answer is why others are not.
func TestKnownSeriesAreStoredWithoutMemoryForACopy(t *testing.T) {
	const rows, exemplars = 30_000, 5_000
	for _, fails := range []int{0, 1, 3} {
		s := &fullTenant{strict: strict{store: store{known: make(map[model.Key]bool)}}, fails: fails}
		p := New(Options{Seed: seed, Head: s, Journal: s, Limits: Limits{MaxInflightBytes: 4 << 20}, Now: func() int64 { return now }})
		names := wire{{"__name__", "known"}, {"__name__", "a"}, {"__name__", "b"}, {"__name__", "known2"}}
		grant, err := p.Admit(context.Background(), "anonymous", 3<<20)
		if err != nil {
			t.Fatal(err)
		}
		b := p.Batch("anonymous", model.Metrics)
		b.Source = granted{names, grant}
		next := 0
		for i, pairs := range names {
			for range rows {
				b.Samples.Append(now, math.Float64bits(float64(next)), 0)
				next++
			}
			for range exemplars * (i % 2) {
				b.Exemplars.AppendBlob(now, model.KindExemplar, model.AppendExemplar(nil, &model.Exemplar{Value: math.Float64bits(float64(next))}), 0)
				next++
			}
			kb := model.KeyBuilder{Seed: seed, Signal: model.Metrics}
			kb.Label([]byte(pairs[0]), []byte(pairs[1]))
			b.EndSeries(kb.Key(onWire(pairs)))
			s.known[b.Keys[i]] = i%3 == 0
		}
		res, err := p.Push(context.Background(), b)
		if fails > 0 {
			if !errors.Is(err, model.ErrTransient) || res.Stored+b.Rows() != next || (res.Stored == 0) != (fails == 1) {
				t.Fatalf("failed at %d: %d rows are stored and %d left, want %d in all; %v", fails, res.Stored, b.Rows(), next, err)
			}
			first := res.Stored
			res, err = p.Push(context.Background(), b)
			res.Stored += first
		}
		var r *Refused
		if !errors.As(err, &r) || r.Status != http.StatusTooManyRequests || r.Limit != "limits.tenant-series" {
			t.Errorf("failed at %d: error %v", fails, err)
		}
		if want := 3*rows + 2*exemplars; res.Stored != want || b.Rows() != rows {
			t.Errorf("failed at %d: %d rows are stored, want %d; %d are left, want %d", fails, res.Stored, want, b.Rows(), rows)
		}
		checkStoredOnce(t, s.batches, res.Stored)
		grant.Release()
	}
}

// checkStoredOnce checks that so many different rows are in small batches, whose series all have rows.
func checkStoredOnce(t *testing.T, batches []model.Batch, want int) {
	t.Helper()
	stored := make(map[float64]int)
	for n := range batches {
		batch := &batches[n]
		if size := copyBytes(batch); len(batches) == 1 || size > 2*portionBytes {
			t.Errorf("batch %d of %d has %d bytes", n+1, len(batches), size)
		}
		for i := range batch.Keys {
			if batch.Samples.Begin(i) == batch.Samples.End(i) && batch.Exemplars.Begin(i) == batch.Exemplars.End(i) {
				t.Errorf("batch %d has a series without rows", n+1)
			}
		}
		for _, v := range batch.Samples.Values {
			stored[math.Float64frombits(v)]++
		}
		for i := range batch.Exemplars.Len() {
			e, err := model.ParseExemplar(batch.Exemplars.Blob(i))
			if err != nil {
				t.Fatal(err)
			}
			stored[math.Float64frombits(e.Value)]++
		}
	}
	if len(stored) != want {
		t.Errorf("%d different rows are stored, want %d", len(stored), want)
	}
	for v, n := range stored {
		if n != 1 {
			t.Fatalf("row %v is stored %d times", v, n)
		}
	}
}
