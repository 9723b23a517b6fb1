package logql

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/cache/ram"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/readtest"
	"github.com/shaledb/shale/internal/store/head"
)

func TestVolume(t *testing.T) {
	m, e := shop()
	web, err := ParseSelector(`{app="web"}`)
	if err != nil {
		t.Fatal(err)
	}
	s := &Selection{Tenants: []string{"a", "c"}, Selectors: []Selector{web}, Range: allTime, Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 20}}, Cost: &model.Cost{}}
	got, err := e.Volume(context.Background(), s)
	if want := (Volume{Streams: 2, Chunks: 3, Bytes: 5 + 9 + 10 + 6, Lines: 4}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if n := m.TextReads().Pages.Load(); n != 0 {
		t.Errorf("%d pages were read", n)
	}
	s.Range = model.TimeRange{Min: 11, Max: 20}
	got, err = e.Volume(context.Background(), s)
	if err != nil || got.Lines != 1 || got.Streams != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	var streams []string
	s.Range = allTime
	if err := e.Volumes(context.Background(), s, nil, func(v *StreamVolume) error {
		streams = append(streams, fmt.Sprint(v.Labels, v.Lines))
		return nil
	}); err != nil || len(streams) != 2 || !strings.HasPrefix(streams[0], `{__tenant_id__="a"`) {
		t.Error(streams, err)
	}
	if m.Open() != 0 {
		t.Error("a cursor is open")
	}
}

// volumesOf returns the volumes of streams as text: of each stream its lines, its bytes, and those of each
// interval that has lines.
func volumesOf(e *Engine, s *Selection, cuts []int64) (all []string, err error) {
	err = e.Volumes(context.Background(), s, cuts, func(v *StreamVolume) error {
		text := fmt.Sprint(v.Labels, " ", v.Lines, " ", v.Bytes)
		for i, n := range v.Intervals {
			if n.Lines > 0 {
				text += fmt.Sprintf(" %d:%d", v.First+i, n)
			}
		}
		all = append(all, text)
		return nil
	})
	slices.Sort(all)
	return all, err
}

// volumes counts the lines of a world one by one.
func (w *world) volumes(within model.TimeRange, cuts []int64) (all []string) {
	for _, l := range w.Streams {
		lines, bytes, intervals := 0, 0, make([]IntervalVolume, len(cuts)+1)
		for _, x := range w.Lines[string(l)] {
			if within.Contains(x.Time) {
				lines++
				bytes += len(x.Text)
				n := &intervals[sort.Search(len(cuts), func(i int) bool { return cuts[i] > x.Time })]
				n.Bytes += uint64(len(x.Text))
				n.Lines++
			}
		}
		if lines == 0 {
			continue
		}
		text := fmt.Sprint(l, " ", lines, " ", bytes)
		for i, n := range intervals {
			if n.Lines > 0 {
				text += fmt.Sprintf(" %d:%d", i, n)
			}
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

// checkVolumes compares random volumes of a world with those that are counted line by line.
func checkVolumes(t *rapid.T, w *world, e *Engine) {
	least, greatest := int64(math.MaxInt64), int64(math.MinInt64)
	for _, lines := range w.Lines {
		for _, x := range lines {
			least, greatest = min(least, x.Time), max(greatest, x.Time)
		}
	}
	if least > greatest {
		return
	}
	for range 4 {
		a, b := rapid.Int64Range(least-2, greatest+2).Draw(t, "from"), rapid.Int64Range(least-2, greatest+2).Draw(t, "to")
		within := model.TimeRange{Min: min(a, b), Max: max(a, b)}
		if rapid.IntRange(0, 2).Draw(t, "all") == 0 {
			within = allTime
		}
		var cuts []int64
		for range rapid.SampledFrom([]int{0, 0, 1, 7}).Draw(t, "cuts") {
			cuts = append(cuts, rapid.Int64Range(least-1, greatest+1).Draw(t, "cut"))
		}
		slices.Sort(cuts)
		s := &Selection{
			Tenants: []string{oneTenant}, Range: within, Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 40}}, Cost: &model.Cost{},
		}
		got, err := volumesOf(e, s, cuts)
		if want := w.volumes(within, cuts); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%+v, cuts %v: %v\n got %q\nwant %q", within, cuts, err, got, want)
		}
	}
}

// TestVolumesAreExact compares volumes with those that are counted line by line: over several sources that
// have copies of lines, and over the buffers and parts of a head.
func TestVolumesAreExact(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			w := drawWorld(t)
			checkVolumes(t, w, w.engine())
			for _, m := range w.Sources {
				if m.Open() != 0 {
					t.Fatal("a cursor is open")
				}
			}
		})
	})
	t.Run("head", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			w := &world{readtest.NewWorld(streamsOf(rapid.SampledFrom([]int{1, 2, 30}).Draw(t, "streams"))...)}
			e, closeHead := drawHead(t, w)
			defer closeHead()
			checkVolumes(t, w, e)
		})
	})
}

// TestVolumesReadNoLines counts lines out of chunks that reach beyond the range and the intervals, under a
// quota that no page of lines fits into.
func TestVolumesReadNoLines(t *testing.T) {
	const lines, size = 2000, 1000
	now := int64(1_700_000_000 * time.Second)
	h, err := head.Open(t.Context(), head.Options{
		FS: vfs.NewMem(), Dir: "/head", Seed: 1, Node: "n", Now: func() int64 { return now },
		Registerer: prometheus.NewRegistry(), Truncate: func(uint64) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	l := model.LabelsOf("app", "x")
	b := &model.Batch{Tenant: oneTenant, Signal: model.Logs}
	for i := range lines {
		text := []byte(fmt.Sprintf("%06d", i) + strings.Repeat("x", size-6))
		b.Text.AppendBlob(now+int64(i)*1e9, model.KindText, model.AppendLine(nil, &model.Line{Text: text}), 0)
	}
	b.Labels.Append(0, l)
	b.EndSeries(l.Key(1, model.Logs))
	h.Apply(1, b)
	if err := h.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	pages, err := ram.New(ram.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := New(Options{Read: read.New(read.Options{Sources: []read.Source{h.Source(pages)}})})
	s := &Selection{
		Tenants: []string{oneTenant}, Range: model.TimeRange{Min: now + 5e9, Max: now + 1994e9},
		Quota: &model.Quota{MaxBytes: lines * size / 8}, Cost: &model.Cost{},
	}
	got, err := volumesOf(e, s, []int64{now + 1000e9, now + 1001e9})
	if want := []string{`{app="x"} 1990 1990000 0:{995000 995} 1:{1000 1} 2:{994000 994}`}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if n := s.Cost.TextLines.Load() + s.Cost.TextBytes.Load(); n != 0 || s.Cost.TextPages.Load() == 0 {
		t.Errorf("%d lines and bytes were read, of %d pages", n, s.Cost.TextPages.Load())
	}
	p := prepared(`{app="x"}`)
	if _, err := e.Lines(t.Context(), &Query{Tenants: s.Tenants, Prepared: p, Start: s.Range.Min, End: s.Range.Max, Quota: s.Quota}); !errors.Is(err, model.ErrLimit) {
		t.Errorf("the lines fit into the quota: %v", err)
	}
}
