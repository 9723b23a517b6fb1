package head

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/store/head/rows"
)

// TestQueriesTakeWhatTheyUse: a query after every row leaves buffers that cost what the rows cost, and not a
// chunk each.
func TestQueriesTakeWhatTheyUse(t *testing.T) {
	r := newRig(t, nil)
	const n = 3000
	want := map[int64]float64{}
	for i := range n {
		at := r.now + int64(i)
		want[at] = float64(i)
		r.push("a", 0, 1, at, want[at])
		cs, err := r.head.Source(nil).Select(context.Background(), everything("a"))
		r.must(err)
		r.must(cs[0].Close())
	}
	if got, most := r.metric("shale_head_row_buffer_bytes"), float64((n+rows.ChunkRows)*rows.RowBytes); got > most {
		t.Errorf("%v bytes for %d rows", got, n)
	}
	if runs := len(r.head.mu.buffers.runs[model.Metrics]); runs > 20 {
		t.Errorf("%d runs", runs)
	}
	r.expect("a", 0, 1, want)
}

// TestLabelQueriesSealNoRows: rows stay where they are while somebody asks for names and values, and those
// are right.
func TestLabelQueriesSealNoRows(t *testing.T) {
	r := newRig(t, nil)
	r.push("a", 0, 20, r.now, 1)
	r.must(r.head.Flush(context.Background()))
	r.push("a", 20, 40, r.now, 1)
	var names, values []string
	collect := func(into *[]string) func([]byte) error {
		return func(b []byte) error { *into = append(*into, string(b)); return nil }
	}
	r.must(r.head.Source(nil).LabelNames(context.Background(), everything("a"), collect(&names)))
	r.must(r.head.Source(nil).LabelValues(context.Background(), everything("a"), "i", collect(&values)))
	slices.Sort(names)
	slices.Sort(values)
	if got := fmt.Sprint(slices.Compact(names)); got != "[__name__ i job]" {
		t.Error(got)
	}
	if got := len(slices.Compact(values)); got != 40 {
		t.Errorf("%d values", got)
	}
	if r.head.mu.buffers.rows.Rows != 20 || len(r.head.mu.buffers.runs[model.Metrics]) != 0 {
		t.Errorf("%d rows are left and %d runs made", r.head.mu.buffers.rows.Rows, len(r.head.mu.buffers.runs[model.Metrics]))
	}
	r.expect("a", 0, 40, map[int64]float64{r.now: 1})
}

// TestQuota: lists of series are charged, refused beyond the limit, and given back. The reader charges rows.
func TestQuota(t *testing.T) {
	r := newRig(t, nil)
	r.push("a", 0, 5000, r.now, 1)
	r.must(r.head.Flush(context.Background()))

	walk := func(most int64) error {
		req := everything("a")
		pool := &model.QueryPool{MaxBytes: math.MaxInt64}
		req.Quota = &model.Quota{MaxBytes: most, Pool: pool}
		cs, err := r.head.Source(nil).Select(context.Background(), req)
		if err == nil {
			for cs[0].Next(context.Background()) {
			}
			err = cs[0].Err()
			if err == nil && pool.Used() < 4*5000 {
				t.Errorf("%d bytes are charged", pool.Used())
			}
			r.must(cs[0].Close())
		}
		if pool.Used() != 0 {
			t.Errorf("limit %d: %d bytes stay charged", most, pool.Used())
		}
		return err
	}
	for _, most := range []int64{1000, 19_999, 21_000} {
		if err := walk(most); !errors.Is(err, model.ErrLimit) {
			t.Errorf("limit %d: %v", most, err)
		}
	}
	if err := walk(1 << 20); err != nil {
		t.Error(err)
	}
}

// TestLargeBlobs pushes histograms that are large for the buffers during background flushes: the buffers keep
// their bound, no call waits forever, and every blob is returned.
func TestLargeBlobs(t *testing.T) {
	const limit, batches = 2 << 20, 60 / racetest.Fewer
	r := newRig(t, func(o *Options) { o.RowBytes = limit })
	r.head.Start()
	blob := func(n int) []byte {
		buckets := make([]uint64, 1+n*8191%300_000)
		for i := range buckets {
			buckets[i] = uint64(n)
		}
		return model.AppendHistogram(nil, &model.Histogram{PositiveSpans: []model.HistogramSpan{{Length: uint32(len(buckets))}}, Positive: buckets})
	}
	for n := range batches {
		b := &model.Batch{Tenant: "a", Signal: model.Metrics}
		for i := range 3 {
			b.Samples.AppendBlob(r.now+int64(n), model.KindHistogram, blob(n), 0)
			b.EndSeries(series(i).Key(testSeed, model.Metrics))
		}
		r.label(b, 0)
		r.apply(b)
		if got := r.metric("shale_head_row_buffer_bytes"); got > 2*limit+rows.ChunkRows*(rows.RowBytes+rows.KindBytes)+rows.BlobBlockBytes {
			t.Fatalf("%v bytes are buffered, and %d are allowed", got, limit)
		}
	}
	got, err := r.read("a")
	r.must(err)
	for i := range 3 {
		rows := got[samplesOf("a", i)]
		for n := range batches {
			if len(rows) != batches || rows[n].At != r.now+int64(n) || rows[n].Blob != string(blob(n)) {
				t.Fatalf("series %d: blob %d is not what it was", i, n)
			}
		}
	}
}

// TestSelectAllocates: what a query costs does not grow with the rows of each series.
func TestSelectAllocates(t *testing.T) {
	skipUnderRace(t)
	r := newRig(t, nil)
	for i := range 20 {
		r.push("a", 0, 500, r.now+int64(i), float64(i))
	}
	cost := func() float64 {
		return testing.AllocsPerRun(10, func() {
			cs, err := r.head.Source(nil).Select(context.Background(), everything("a"))
			r.must(err)
			for cs[0].Next(context.Background()) {
			}
			r.must(cs[0].Close())
		})
	}
	if got := cost(); got > 100 {
		t.Errorf("%v allocations for 500 series of 20 rows", got)
	}
}

// TestApplyAllocates keeps the way of floats into the buffers free of allocations, but for chunks.
func TestApplyAllocates(t *testing.T) {
	skipUnderRace(t)
	r := newRig(t, nil)
	b := r.batchOf("a", 0, 1000, r.now, 1)
	r.label(b, 0)
	r.apply(b)
	b.Labels.Reset()
	alloctest.AtMost(t, 1, 20, func() {
		r.seq++
		r.head.Apply(r.seq, b)
	})
	var dst []uint32
	alloctest.AtMost(t, 0, 20, func() {
		var err error
		dst, err = r.head.Resolve(b, dst[:0])
		r.must(err)
	})
}

func skipUnderRace(t *testing.T) {
	alloctest.Counts(t)
}
