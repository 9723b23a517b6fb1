package head

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// maxBlockSeries bounds the series of a block, so that any set of them is at most a 2 MB bitmap.
const maxBlockSeries = 1 << 24

// Ship takes everything that is in the head to the bucket, closed or not: for tests, and for moving a machine.
func (h *Head) Ship(ctx context.Context) error {
	h.merging.Lock()
	defer h.merging.Unlock()
	if err := h.Flush(ctx); err != nil {
		return err
	}
	for s := range signals {
		signal := model.Signal(s)
		if in := h.group(signal, dataPart, young); len(in) > 0 {
			if err := h.sortIntoWindows(ctx, signal, in); err != nil {
				return err
			}
		}
		for _, g := range h.groups(signal) {
			if err := h.shipAll(ctx, signal, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// shipAll ships a group until nothing is left of it: first the parts that an earlier try has marked, then the others.
func (h *Head) shipAll(ctx context.Context, s model.Signal, g group) error {
	for {
		in, err := h.markShip(ctx, s, g)
		if err != nil || len(in) == 0 {
			return err
		}
		if err := h.ship(ctx, s, g, in); err != nil {
			return err
		}
	}
}

// shipDue ships the groups whose time has come and reports whether there was one. A group that fails keeps no other
// from being shipped, but for late rows, which wait for the windows that they reach into. The caller holds merging.
func (h *Head) shipDue(ctx context.Context) (shipped bool, err error) {
	if h.o.Shipper == nil {
		return false, nil
	}
	now := h.o.Now()
	for s := range signals {
		signal := model.Signal(s)
		due := slices.DeleteFunc(h.groups(signal), func(g group) bool { return !h.due(signal, g, now) })
		if len(due) == 0 {
			continue
		}
		// What is buffered, or in young parts, may belong to a window that closes.
		if err := h.Flush(ctx); err != nil {
			return shipped, err
		}
		if in := h.group(signal, dataPart, young); len(in) > 0 {
			if err := h.sortIntoWindows(ctx, signal, in); err != nil {
				return shipped, err
			}
		}
		for _, g := range due {
			groupErr := h.shipGroup(ctx, signal, g)
			shipped = shipped || groupErr == nil
			err = errors.Join(err, groupErr)
		}
	}
	return shipped && err == nil, err
}

// shipGroup ships a window, or the late rows after every window that they reach into: rows of a window that stayed here
// would count as newer than late ones in the bucket.
func (h *Head) shipGroup(ctx context.Context, s model.Signal, g group) error {
	if g == late {
		for _, w := range h.groups(s) {
			if start, ok := w.window(); ok && h.lateReaches(s, start) {
				if err := h.shipAll(ctx, s, w); err != nil {
					return err
				}
			}
		}
	}
	return h.shipAll(ctx, s, g)
}

// due reports whether a group is to be shipped: a closed window, one with enough bytes, late rows that are many or old,
// or a ship that a crash or an error cut short.
func (h *Head) due(s model.Signal, g group, now int64) bool {
	var bytes int64
	oldest := now
	for _, p := range h.snapshot() {
		if i := &p.info; i.Signal == s && i.Kind == dataPart && i.Group == g {
			if i.Ship != 0 {
				return true
			}
			bytes += i.Bytes
			oldest = min(oldest, i.Created)
		}
	}
	if start, ok := g.window(); ok {
		return h.closed(start, now) || bytes >= h.o.WindowBytes
	}
	return bytes >= h.o.LateBytes || now-oldest >= int64(h.o.LateAge)
}

// ship makes blocks of parts of a group and drops these once the blocks are in the catalogue.
func (h *Head) ship(ctx context.Context, s model.Signal, g group, in []*localPart) error {
	sw := &shipWriter{h: h, ctx: ctx}
	sw.options = h.writerOptions(s, in[0].info.SeqLo, in[len(in)-1].info.SeqHi)
	sw.options.Labels, sw.options.Level = true, part.Dense
	// The same input gives the same bytes.
	sw.options.Created = 0
	for _, p := range in {
		sw.options.Created = max(sw.options.Created, p.info.Created)
	}
	err := part.Merge(ctx, streams(in), sw.add, part.MergeOptions{})
	if err == nil {
		err = sw.cut()
	}
	if err != nil {
		sw.abandon()
		h.metrics.shipErrors.Inc()
		return fmt.Errorf("ship %s: %w", g, err)
	}
	h.labelsMayGo.Store(true)
	return h.commit(ctx, edit{remove: in})
}

// markShip returns the parts to ship together: those that an earlier try has marked, or else all of the group, marked
// now.
func (h *Head) markShip(ctx context.Context, s model.Signal, g group) (in []*localPart, err error) {
	for _, p := range h.snapshot() {
		if i := &p.info; i.Signal == s && i.Kind == dataPart && i.Group == g && i.Ship != 0 {
			in = append(in, p)
		}
	}
	if len(in) > 0 {
		return in, nil
	}
	if in = h.group(s, dataPart, g); len(in) == 0 {
		return nil, nil
	}
	return in, h.commit(ctx, edit{ship: in})
}

// shipWriter writes the blocks of one ship, cut by number of series.
type shipWriter struct {
	h       *Head
	ctx     context.Context
	options part.WriterOptions
	tenant  string
	walks   []labelWalk

	cuts     int
	file     string
	w        *partWriter
	series   int
	min, max model.Key
}

func (sw *shipWriter) add(tenant string, k model.Key, _ model.Labels, rows *model.SeriesRows) error {
	if sw.w != nil && sw.series == maxBlockSeries {
		if err := sw.cut(); err != nil {
			return err
		}
	}
	if sw.w == nil {
		if err := sw.begin(); err != nil {
			return err
		}
	}
	l, err := sw.labelsOf(tenant, k)
	if err != nil {
		return err
	}
	if sw.series == 0 || k.Less(sw.min) {
		sw.min = k
	}
	if sw.series == 0 || sw.max.Less(k) {
		sw.max = k
	}
	sw.series++
	if err := sw.w.Series(tenant, k, l); err != nil {
		return err
	}
	return sw.w.Rows(rows)
}

// labelsOf finds the labels of a key. That there are none is a bug, which stops the ship before a block without them
// can be uploaded; the rows stay here and can be read.
func (sw *shipWriter) labelsOf(tenant string, k model.Key) (model.Labels, error) {
	if tenant != sw.tenant || sw.walks == nil {
		sw.tenant, sw.walks = tenant, sw.h.labelWalksOf(sw.ctx, sw.options.Signal, tenant)
	}
	for _, w := range sw.walks {
		l, err := w.seek(sw.ctx, k)
		if err != nil || l != nil {
			return l, err
		}
	}
	return nil, fmt.Errorf("%w: tenant %q: key %s has rows and no labels", model.ErrCorrupt, tenant, k)
}

func (sw *shipWriter) begin() (err error) {
	sw.file = sw.h.nextFile(".block")
	sw.series = 0
	sw.w, err = createPart(sw.h.o.FS, sw.h.o.Dir, sw.file, sw.options)
	return err
}

// cut finishes a block and takes it to the bucket.
func (sw *shipWriter) cut() error {
	if sw.w == nil {
		return nil
	}
	w := sw.w
	sw.w = nil
	meta, size, err := w.finish()
	if err != nil {
		return err
	}
	err = sw.h.o.Shipper.Ship(sw.ctx, Block{Meta: meta, KeyMin: sw.min, KeyMax: sw.max, Cut: sw.cuts, File: w.name, Size: size})
	sw.cuts++
	if err == nil {
		sw.h.metrics.shippedBytes.Add(float64(size))
	}
	return errors.Join(err, sw.h.o.FS.Remove(w.name))
}

func (sw *shipWriter) abandon() {
	if sw.w != nil {
		sw.w.abandon()
	}
}
