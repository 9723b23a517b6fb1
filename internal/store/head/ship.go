package head

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
)

// Ship takes everything in the head to the bucket, also windows that are not closed: for tests, and for
// moving to another machine. What fails does not stop the rest, as in shipDue.
func (h *Head) Ship(ctx context.Context) error {
	h.merging.Lock()
	defer h.merging.Unlock()
	_, failed, err := h.shipMarked(ctx)
	if flushErr := h.Flush(ctx); flushErr != nil {
		return errors.Join(err, flushErr)
	}
	for s := range signals {
		signal := model.Signal(s)
		err = errors.Join(err, h.sortYoung(ctx, signal))
		_, shipErr := h.shipGroups(ctx, signal, without(h.groups(signal), failed[s]))
		err = errors.Join(err, shipErr)
	}
	return err
}

// shipAll ships all parts of a group: first those that an earlier attempt has marked, then the others.
func (h *Head) shipAll(ctx context.Context, s model.Signal, g local.Group) error {
	for {
		in, err := h.markShip(ctx, s, g)
		if err != nil {
			h.metrics.shipErrors.Inc()
			return fmt.Errorf("ship %s: %w", g, err)
		}
		if len(in) == 0 {
			return nil
		}
		if err := h.ship(ctx, s, g, in); err != nil {
			return err
		}
	}
}

// shipDue ships the groups that are due and reports whether there was one. Ships that are marked come first:
// they have their space, and make room for the others. A group that fails does not stop the others, except
// for late rows, which wait for the windows that they reach into. The caller holds merging.
func (h *Head) shipDue(ctx context.Context) (shipped bool, err error) {
	if h.o.Shipper == nil {
		return false, nil
	}
	now, some := h.o.Now(), false
	var due [signals][]local.Group
	for s := range signals {
		signal := model.Signal(s)
		due[s] = slices.DeleteFunc(h.groups(signal), func(g local.Group) bool { return !h.due(signal, g, now) })
		some = some || len(due[s]) > 0
	}
	if !some {
		return false, nil
	}
	shipped, failed, err := h.shipMarked(ctx)
	// Rows in buffers and young parts may belong to a window that closes.
	if flushErr := h.Flush(ctx); flushErr != nil {
		return false, errors.Join(err, flushErr)
	}
	for s := range signals {
		if len(due[s]) == 0 {
			continue
		}
		// Young parts that do not fit must not keep the ships from making room. Their rows are newer than all
		// that is shipped, so they may come later, as late rows.
		err = errors.Join(err, h.sortYoung(ctx, model.Signal(s)))
		more, shipErr := h.shipGroups(ctx, model.Signal(s), without(due[s], failed[s]))
		shipped, err = shipped || more, errors.Join(err, shipErr)
	}
	return shipped && err == nil, err
}

// shipMarked repeats the ships that earlier attempts have marked, and returns the groups that failed. It
// needs no space besides the reservations. Rows that are not marked are newer, so they may stay in the head.
func (h *Head) shipMarked(ctx context.Context) (shipped bool, failed [signals][]local.Group, err error) {
	for s := range signals {
		signal := model.Signal(s)
		for _, g := range h.groups(signal) {
			in := h.marked(signal, g)
			if len(in) == 0 || g == local.Late && h.reachWindow(signal, in) {
				continue
			}
			if groupErr := h.ship(ctx, signal, g, in); groupErr != nil {
				failed[s] = append(failed[s], g)
				err = errors.Join(err, groupErr)
				continue
			}
			shipped = true
		}
	}
	return shipped, failed, err
}

// reachWindow reports whether late parts reach into a window that is in the head: see shipGroup.
func (h *Head) reachWindow(s model.Signal, late []*local.Part) bool {
	return slices.ContainsFunc(h.groups(s), func(g local.Group) bool {
		times, ok := g.Window()
		return ok && slices.ContainsFunc(late, func(p *local.Part) bool { return p.Info.Range.Overlaps(times) })
	})
}

// shipGroups ships groups of a signal, in their order, and reports whether one is through.
func (h *Head) shipGroups(ctx context.Context, s model.Signal, gs []local.Group) (shipped bool, err error) {
	for _, g := range gs {
		groupErr := h.shipGroup(ctx, s, g)
		shipped = shipped || groupErr == nil
		err = errors.Join(err, groupErr)
		if err != nil && ctx.Err() != nil {
			break
		}
	}
	return shipped, err
}

// shipGroup ships a window, or the late rows after all windows that they reach into: rows of a window that
// stayed in the head would count as newer than the late rows in the bucket.
func (h *Head) shipGroup(ctx context.Context, s model.Signal, g local.Group) error {
	if g == local.Late {
		for _, w := range h.groups(s) {
			if times, ok := w.Window(); ok && h.lateReaches(s, times) {
				if err := h.shipAll(ctx, s, w); err != nil {
					return err
				}
			}
		}
	}
	return h.shipAll(ctx, s, g)
}

// due reports whether a group must be shipped: a closed window, a window with enough bytes, late rows that
// are many or old, or a ship that a crash or an error has interrupted.
func (h *Head) due(s model.Signal, g local.Group, now int64) bool {
	var bytes int64
	oldest := now
	for _, p := range h.snapshot() {
		if i := &p.Info; i.Signal == s && i.Kind == local.Data && i.Group == g {
			if i.Ship != 0 {
				return true
			}
			bytes += i.Bytes
			oldest = min(oldest, i.Created)
		}
	}
	if times, ok := g.Window(); ok {
		return h.closed(times, now) || bytes >= h.o.WindowBytes
	}
	return bytes >= h.o.LateBytes || now-oldest >= int64(h.o.LateAge)
}

// ship makes blocks of parts of a group, unless an earlier try has made them, and drops the parts once the
// blocks are in the catalogue.
func (h *Head) ship(ctx context.Context, s model.Signal, g local.Group, in []*local.Part) error {
	id := shipOf(s, g, in)
	left, built := h.merging.built[id]
	var err error
	if built {
		left, err = h.upload(ctx, left)
	} else if err = h.roomToBuild(); err == nil {
		if err = h.reserve(id, h.shipFactor()*partBytes(in)); err == nil {
			left, err = h.build(ctx, s, in)
		}
	}
	if err != nil {
		h.metrics.shipErrors.Inc()
		h.keepBuilt(id, left, err)
		return fmt.Errorf("ship %s: %w", g, err)
	}
	delete(h.merging.built, id)
	h.labelsMayGo.Store(true)
	if err := h.commit(ctx, edit{remove: in}); err != nil {
		return err // the next try builds the blocks again
	}
	h.endReservation(id)
	return nil
}

// markShip returns the parts to ship together: those that an earlier try has marked, or else the oldest ones
// of the group that there is space for, marked now.
//
// Marked parts cannot be divided later, even if the disk has become full: blocks of them may be in the
// bucket already, by names that follow from the parts. So space is reserved before the mark, and until
// the ship is through. Otherwise writes take it while the bucket is away, and then the ship,
// which would make room, never fits again.
func (h *Head) markShip(ctx context.Context, s model.Signal, g local.Group) (in []*local.Part, err error) {
	if in = h.marked(s, g); len(in) > 0 {
		return in, nil
	}
	if in = h.group(s, local.Data, g); len(in) == 0 {
		return nil, nil
	}
	if err := h.roomToBuild(); err != nil {
		return nil, err
	}
	in = h.fitting(in, h.shipFactor())
	id := shipOf(s, g, in)
	if err := h.reserve(id, h.shipFactor()*partBytes(in)); err != nil {
		return nil, err
	}
	if err := h.commit(ctx, edit{ship: in}); err != nil {
		h.endReservation(id)
		return nil, err
	}
	return in, nil
}

// marked returns the parts of a group that an earlier try has marked, oldest first.
func (h *Head) marked(s model.Signal, g local.Group) (in []*local.Part) {
	for _, p := range h.snapshot() {
		if i := &p.Info; i.Signal == s && i.Kind == local.Data && i.Group == g && i.Ship != 0 {
			in = append(in, p)
		}
	}
	return in
}
