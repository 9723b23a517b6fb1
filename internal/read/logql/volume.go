package logql

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
)

// Volume is a number of streams, with their chunks, the bytes of their lines, and their lines.
type Volume struct {
	Streams, Chunks, Bytes, Lines uint64
}

// StreamVolume is the volume of one stream.
type StreamVolume struct {
	Labels model.Labels
	Volume
	// First is the first interval in which the stream has lines. Intervals has that interval and those after
	// it, up to the last one with lines.
	First     int
	Intervals []IntervalVolume
}

// IntervalVolume is the bytes and the lines of one interval.
type IntervalVolume struct{ Bytes, Lines uint64 }

// Volume returns the volume of all selected streams within the range.
func (e *Engine) Volume(ctx context.Context, s *Selection) (Volume, error) {
	var all Volume
	err := e.Volumes(ctx, s, nil, func(v *StreamVolume) error {
		all.Streams++
		all.Chunks += v.Chunks
		all.Bytes += v.Bytes
		all.Lines += v.Lines
		return nil
	})
	return all, err
}

// Volumes calls visit with the volume of each selected stream that has lines within the range, once for each
// selector that the stream satisfies, in any order, one at a time. The volume is valid during the call. Cuts
// are ascending times that divide the range into intervals; each interval begins with a cut, and the first
// with the range.
//
// Volumes counts exactly, and mostly without reading lines: a chunk within one interval counts by its
// statistics, and other chunks by their times and lengths. A line that is stored more than once counts once.
// Chunks must be read to find copies, but only if lines of equal time and length are in several of them.
func (e *Engine) Volumes(ctx context.Context, s *Selection, cuts []int64, visit func(*StreamVolume) error) error {
	return e.volumes(ctx, s, cellsOf(cuts), cuts, visit)
}

func (e *Engine) volumes(ctx context.Context, s *Selection, cells *model.TextCells, cuts []int64, visit func(*StreamVolume) error) error {
	return s.each(func(tenant string, req *model.Request) error {
		req.LabelsOnly, req.Cells = false, cells
		set, err := e.read.SelectText(ctx, req)
		if err != nil {
			return err
		}
		defer set.Close()
		w := &volumeWalk{set: set}
		for range e.workers {
			c := newVolumeCount(req, set.Range(), cuts)
			defer c.release()
			w.counts = append(w.counts, c)
		}
		if len(s.Tenants) > 1 {
			w.tenant = tenant
		}
		return w.walk(ctx, visit)
	})
}

// cellsOf returns the cells of intervals. Cuts mostly are evenly spaced; else some chunks are read.
func cellsOf(cuts []int64) *model.TextCells {
	c := &model.TextCells{Bytes: true}
	if len(cuts) > 0 {
		c.Phase = cuts[0] - 1
	}
	if len(cuts) > 1 {
		c.Step = cuts[1] - cuts[0]
	}
	return c
}

// batchedChunks is how many chunks a walk knows at a time, to announce all pages that it will read.
const batchedChunks = 4096

// volumeWalk counts the streams of a set.
type volumeWalk struct {
	set    *read.TextSet
	tenant string // to be shown among the labels, if it is not empty
	// counts work side by side, each on a stream.
	counts []*volumeCount

	streams []volumeStream
	labels  []byte
	chunks  []model.TextChunk
	pairs   pairs
}

// volumeStream is a stream whose chunks have been listed. Labels and chunks end at these indexes.
type volumeStream struct{ labels, chunks int }

func (w *volumeWalk) walk(ctx context.Context, visit func(*StreamVolume) error) (err error) {
	for w.set.Next(ctx) {
		if w.chunks, err = w.set.Chunks(ctx, w.chunks); err != nil {
			return err
		}
		w.appendLabels(w.set.Labels())
		w.streams = append(w.streams, volumeStream{len(w.labels), len(w.chunks)})
		if len(w.chunks) >= batchedChunks {
			if err := w.flush(ctx, visit); err != nil {
				return err
			}
		}
	}
	if err := w.set.Err(); err != nil {
		return err
	}
	return w.flush(ctx, visit)
}

func (w *volumeWalk) appendLabels(l model.Labels) {
	if w.tenant == "" {
		w.labels = append(w.labels, l...)
		return
	}
	w.pairs.reset()
	w.pairs.add(l)
	w.pairs.setTenant(w.tenant)
	w.labels = w.pairs.append(w.labels)
}

// flush counts the streams whose chunks have been listed.
func (w *volumeWalk) flush(ctx context.Context, visit func(*StreamVolume) error) error {
	w.counts[0].announce(ctx, w.chunks)
	var next atomic.Int32
	var visits sync.Mutex
	own := model.ProcessorOf(ctx)
	all, group := errgroup.WithContext(ctx)
	for _, c := range w.counts[:min(len(w.counts), len(w.streams))] {
		all.Go(func() error {
			ctx, done := model.Computing(group)
			defer done()
			processor := model.ProcessorOf(ctx)
			for i := int(next.Add(1)); i <= len(w.streams); i = int(next.Add(1)) {
				var from volumeStream
				if i > 1 {
					from = w.streams[i-2]
				}
				to := w.streams[i-1]
				processor.Leave()
				processor.Enter(ctx)
				err := model.Caught(func() error {
					v, err := c.stream(ctx, w.chunks[from.chunks:to.chunks])
					if err != nil || v.Lines == 0 {
						return err
					}
					v.Labels = model.Labels(w.labels[from.labels:to.labels])
					visits.Lock()
					defer visits.Unlock()
					return visit(v)
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	own.Leave()
	err := all.Wait()
	own.Enter(ctx)
	w.streams, w.labels, w.chunks = w.streams[:0], w.labels[:0], w.chunks[:0]
	return err
}
