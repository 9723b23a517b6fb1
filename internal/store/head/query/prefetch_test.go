package query

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// madeSeries are series whose number is their key, until they fail or panic.
type madeSeries struct {
	n, at  int
	pad    int // bytes of labels
	err    error
	panics bool
}

func (s *madeSeries) next() (bool, error) {
	if s.at++; s.at <= s.n {
		return true, nil
	}
	if s.panics {
		panic("a hostile page")
	}
	return false, s.err
}

func (s *madeSeries) key() model.Key { return model.Key{Lo: uint64(s.at)} }
func (s *madeSeries) labels() model.Labels {
	return append(bytes.Repeat([]byte{'x'}, s.pad), fmt.Sprint(s.at)...)
}

// TestSeriesPrefetch: all series are returned, in order and with their labels. Another goroutine finds those
// after the first batch, and only those. An error there ends the walk.
func TestSeriesPrefetch(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		madeSeries
		alone bool // whether the caller finds all
		err   string
	}{
		{madeSeries{n: 0}, true, ""},
		{madeSeries{n: 1}, true, ""},
		{madeSeries{n: firstBatchSeries - 1}, true, ""},
		{madeSeries{n: firstBatchSeries}, false, ""},
		{madeSeries{n: firstBatchSeries + 1}, false, ""},
		{madeSeries{n: firstBatchSeries + batchSeries}, false, ""},
		{madeSeries{n: 50 * batchSeries}, false, ""},
		{madeSeries{n: 20, pad: batchLabelBytes / 3}, false, ""},
		{madeSeries{n: 3, err: broken}, true, "broken"},
		{madeSeries{n: 10 * batchSeries, err: broken}, false, "broken"},
		{madeSeries{n: 10 * batchSeries, panics: true}, false, "unexpected error: a hostile page"},
	} {
		t.Run(fmt.Sprintf("%+v", c.madeSeries), func(t *testing.T) {
			want := c.madeSeries
			u, quota := new(seriesUnion), &model.Quota{Pool: &model.QueryPool{MaxBytes: math.MaxInt64}}
			u.add(&c.madeSeries)
			a := seriesPrefetch{series: u, quota: quota}
			seen := 0
			more, err := a.next(t.Context())
			if alone := a.found == nil; alone != c.alone {
				t.Errorf("the caller finds all: %t", alone)
			}
			for ; more && err == nil; more, err = a.next(t.Context()) {
				seen++
				if label := fmt.Sprint(seen); a.key().Lo != uint64(seen) || !strings.HasSuffix(string(a.labels()), label) || len(a.labels()) != want.pad+len(label) {
					t.Fatalf("series %d is %v, with %d bytes of labels", seen, a.key(), len(a.labels()))
				}
			}
			if got := fmt.Sprint(err); c.err == "" && err != nil || c.err != "" && got != c.err {
				t.Errorf("ended with %v, want %q", err, c.err)
			}
			if c.err == "" && seen != want.n {
				t.Errorf("%d of %d series", seen, want.n)
			}
			if more, _ := a.next(t.Context()); more {
				t.Error("goes on behind its end")
			}
			if held := quota.Pool.Used(); seen > 0 && held < int64(min(seen, firstBatchSeries)*16) || held > (batchesPerQuery+1)*(batchLabelBytes+int64(want.pad)+batchSeries*40) {
				t.Errorf("%d bytes are charged for %d series", held, seen)
			}
			a.close()
			a.close()
			if held := quota.Pool.Used(); held != 0 {
				t.Errorf("%d bytes stay charged", held)
			}
		})
	}
}

// TestSeriesPrefetchEnds: the finder ends when the query does, wherever it is.
func TestSeriesPrefetchEnds(t *testing.T) {
	for _, taken := range []int{1, firstBatchSeries + 1, 20 * batchSeries} {
		ctx, cancel := context.WithCancel(t.Context())
		made := &madeSeries{n: 1 << 40}
		u, quota := new(seriesUnion), new(model.Quota)
		u.add(made)
		a := seriesPrefetch{series: u, quota: quota}
		for range taken {
			if more, err := a.next(ctx); !more || err != nil {
				t.Fatal(more, err)
			}
		}
		if taken > firstBatchSeries {
			cancel()
			for more := true; more; {
				var err error
				if more, err = a.next(ctx); err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
			}
		}
		a.close() // waits for it
		if most := taken + (batchesPerQuery+1)*batchSeries; made.at > most {
			t.Errorf("%d series were found for %d", made.at, taken)
		}
		cancel()
	}
}
