package tsdbimport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
	"github.com/prometheus/prometheus/tsdb/tombstones"

	"github.com/shaledb/shale/internal/model"
)

// reader reads the samples of one block.
type reader struct {
	block    *tsdb.Block
	index    tsdb.IndexReader
	chunks   tsdb.ChunkReader
	stones   tombstones.Reader
	external map[string]string
	scratch  labels.ScratchBuilder
	metas    []chunks.Meta
	iterator chunkenc.Iterator
}

// point is a sample with its time in Unix milliseconds: a float, unless it has a histogram.
type point struct {
	at, start int64
	bits      uint64
	integer   *histogram.Histogram
	float     *histogram.FloatHistogram
}

// piece is a part of one series: its points in one chunk, in the order of their times.
type piece struct {
	ref    storage.SeriesRef
	labels labels.Labels
	points []point
}

// openBlock opens a block in a folder.
func openBlock(b *Block, dir string) (_ *reader, err error) {
	block, err := tsdb.OpenBlock(slog.New(slog.DiscardHandler), dir, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", model.ErrCorrupt, err)
	}
	r := &reader{block: block, external: b.External, scratch: labels.NewScratchBuilder(16)}
	if r.index, err = block.Index(); err == nil {
		r.chunks, err = block.Chunks()
	}
	if err == nil {
		r.stones, err = block.Tombstones()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", model.ErrCorrupt, errors.Join(err, r.close()))
	}
	return r, nil
}

// close closes the block.
func (r *reader) close() error {
	var errs []error
	if r.index != nil {
		errs = append(errs, r.index.Close())
	}
	if r.chunks != nil {
		errs = append(errs, r.chunks.Close())
	}
	if r.stones != nil {
		errs = append(errs, r.stones.Close())
	}
	return errors.Join(append(errs, r.block.Close())...)
}

// each calls fn with the points in [lo, hi) of every series from a reference on, in the order of references.
// It calls fn once for each chunk that has such points; fn must not keep the slice of points.
func (r *reader) each(ctx context.Context, from storage.SeriesRef, lo, hi int64, fn func(piece) error) error {
	name, value := index.AllPostingsKey()
	postings, err := r.index.Postings(ctx, name, value)
	if err != nil {
		return fmt.Errorf("index: %w: %w", model.ErrCorrupt, err)
	}
	found := postings.Next()
	if found && postings.At() < from {
		found = postings.Seek(from)
	}
	for ; found; found = postings.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.series(postings.At(), lo, hi, fn); err != nil {
			return err
		}
	}
	if err := postings.Err(); err != nil {
		return fmt.Errorf("index: %w: %w", model.ErrCorrupt, err)
	}
	return nil
}

// series calls fn with the points of one series.
func (r *reader) series(ref storage.SeriesRef, lo, hi int64, fn func(piece) error) error {
	if err := r.index.Series(ref, &r.scratch, &r.metas); err != nil {
		return fmt.Errorf("index: series %d: %w: %w", ref, model.ErrCorrupt, err)
	}
	overlaps := func(m chunks.Meta) bool { return m.MinTime < hi && m.MaxTime >= lo }
	if !slices.ContainsFunc(r.metas, overlaps) {
		return nil
	}
	deleted, err := r.stones.Get(ref)
	if err != nil {
		return fmt.Errorf("tombstones: series %d: %w: %w", ref, model.ErrCorrupt, err)
	}
	s := piece{ref: ref, labels: r.withExternal(r.scratch.Labels())}
	for _, m := range r.metas {
		if !overlaps(m) {
			continue
		}
		if s.points, err = r.chunk(s.points[:0], m, lo, hi, deleted); err != nil {
			return fmt.Errorf("chunk %d of series %s: %w: %w", m.Ref, s.labels, model.ErrCorrupt, err)
		}
		if len(s.points) == 0 {
			continue
		}
		if err := fn(s); err != nil {
			return err
		}
	}
	return nil
}

// withExternal adds the external labels. As in Thanos, they win over labels of the series.
func (r *reader) withExternal(l labels.Labels) labels.Labels {
	if len(r.external) == 0 {
		return l
	}
	b := labels.NewBuilder(l)
	for _, name := range slices.Sorted(maps.Keys(r.external)) {
		b.Set(name, r.external[name])
	}
	return b.Labels()
}

// chunk appends the points of a chunk that are in [lo, hi) and not deleted.
func (r *reader) chunk(points []point, m chunks.Meta, lo, hi int64, deleted tombstones.Intervals) ([]point, error) {
	c, iterable, err := r.chunks.ChunkOrIterable(m)
	if err != nil {
		return points, err
	}
	if c == nil {
		r.iterator = iterable.Iterator(r.iterator)
	} else {
		r.iterator = c.Iterator(r.iterator)
	}
	for {
		kind := r.iterator.Next()
		if kind == chunkenc.ValNone {
			return points, r.iterator.Err()
		}
		p := point{at: r.iterator.AtT(), start: r.iterator.AtST()}
		if p.at < lo || p.at >= hi || isDeleted(deleted, p.at) {
			continue
		}
		switch kind {
		case chunkenc.ValFloat:
			_, v := r.iterator.At()
			p.bits = math.Float64bits(v)
		case chunkenc.ValHistogram:
			_, p.integer = r.iterator.AtHistogram(nil)
		case chunkenc.ValFloatHistogram:
			_, p.float = r.iterator.AtFloatHistogram(nil)
		default:
			return points, fmt.Errorf("a value of the unknown type %v", kind)
		}
		points = append(points, p)
	}
}

func isDeleted(intervals tombstones.Intervals, at int64) bool {
	for _, i := range intervals {
		if i.InBounds(at) {
			return true
		}
	}
	return false
}
