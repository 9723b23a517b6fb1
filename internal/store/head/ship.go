package head

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
)

// signalGroup is a group of parts of one signal.
type signalGroup struct {
	signal model.Signal
	group  local.Group
}

// chooser returns the parts of a group that are shipped next, marked as one ship, or none.
type chooser func(ctx context.Context, g signalGroup) ([]*local.Part, error)

// Ship takes everything in the head to the bucket, also windows that are not closed: for tests, and for
// moving to another machine. What fails does not stop the rest, as in shipDue.
func (h *Head) Ship(ctx context.Context) error {
	h.merging.Lock()
	defer h.merging.Unlock()
	return h.shipAll(ctx)
}

// ShipCovered is [Head.Ship] for a journal that others keep, and that goes by what the bucket has: it records
// up to which batch that is, also if there were no rows to ship.
func (h *Head) ShipCovered(ctx context.Context) error {
	h.merging.Lock()
	defer h.merging.Unlock()
	if err := ctx.Err(); err != nil { // it ended while another ship was running
		return fmt.Errorf("ship: %w: %w", model.ErrTransient, err)
	}
	if err := h.shipAll(ctx); err != nil {
		return err
	}
	s := Ship{Node: h.o.Node, Epoch: h.epoch, Covered: h.merging.covered, Flushed: h.merging.flushed}
	if s.Covered <= h.merging.recorded || h.coversMore(s.Covered, nil) {
		return nil
	}
	if err := h.CommitDeletions(ctx); err != nil { // the next owner does not see their records
		return fmt.Errorf("ship: %w", err)
	}
	if err := h.o.Shipper.Ship(ctx, &s); err != nil {
		h.metrics.shipErrors.Inc()
		return fmt.Errorf("ship: %w", err)
	}
	h.merging.recorded = s.Covered
	return nil
}

// shipAll ships everything. The caller holds merging.
func (h *Head) shipAll(ctx context.Context) error {
	_, failed, err := h.shipMarked(ctx)
	if flushErr := h.flushToShip(ctx); flushErr != nil {
		return errors.Join(err, flushErr)
	}
	var all []signalGroup
	for s := range signals {
		err = errors.Join(err, h.sortYoung(ctx, model.Signal(s)))
		all = append(all, h.signalGroups(model.Signal(s))...)
	}
	_, _, shipErr := h.shipGroups(ctx, without(all, failed), h.markShip)
	return errors.Join(err, shipErr)
}

// shipDue ships the groups that are due and reports whether there was one. Ships that are marked come first:
// they have their space, and make room for the others. A group that fails does not stop the others, except
// for late rows, which wait for the windows that they reach into. The caller holds merging.
func (h *Head) shipDue(ctx context.Context) (shipped bool, err error) {
	if h.o.Shipper == nil || h.o.ShipsRest != nil && h.o.ShipsRest() {
		return false, nil
	}
	now := h.o.Now()
	var due []signalGroup
	for s := range signals {
		due = append(due, slices.DeleteFunc(h.signalGroups(model.Signal(s)), func(g signalGroup) bool { return !h.due(g, now) })...)
	}
	if len(due) == 0 {
		return false, nil
	}
	shipped, failed, err := h.shipMarked(ctx)
	// Rows in buffers and young parts may belong to a window that closes.
	if flushErr := h.flushToShip(ctx); flushErr != nil {
		return false, errors.Join(err, flushErr)
	}
	for s := range signals {
		if slices.ContainsFunc(due, func(g signalGroup) bool { return g.signal == model.Signal(s) }) {
			// Young parts that do not fit must not keep the ships from making room. Their rows are newer than all
			// that is shipped, so they may come later, as late rows.
			err = errors.Join(err, h.sortYoung(ctx, model.Signal(s)))
		}
	}
	more, _, shipErr := h.shipGroups(ctx, without(due, failed), h.markShip)
	shipped, err = shipped || more, errors.Join(err, shipErr)
	return shipped && err == nil, err
}

// flushToShip flushes, and notes for the ships up to which batch and time that has moved rows to parts.
func (h *Head) flushToShip(ctx context.Context) error {
	now := h.o.Now()
	if err := h.Flush(ctx); err != nil {
		return err
	}
	h.merging.covered, h.merging.flushed = h.Covered(), now
	return nil
}

// signalGroups returns the groups of a signal, in the order in which they are to be shipped.
func (h *Head) signalGroups(s model.Signal) (all []signalGroup) {
	for _, g := range h.groups(s) {
		all = append(all, signalGroup{s, g})
	}
	return all
}

// shipMarked repeats the ships that earlier attempts have marked, and returns the groups that failed. It
// needs no space besides the reservations. Rows that are not marked are newer, so they may stay in the head.
func (h *Head) shipMarked(ctx context.Context) (shipped bool, failed []signalGroup, err error) {
	var marked []signalGroup
	for s := range signals {
		for _, g := range h.signalGroups(model.Signal(s)) {
			if in := h.marked(g); len(in) > 0 && !(g.group == local.Late && h.reachWindow(g.signal, in)) {
				marked = append(marked, g)
			}
		}
	}
	return h.shipGroups(ctx, marked, func(_ context.Context, g signalGroup) ([]*local.Part, error) { return h.marked(g), nil })
}

// reachWindow reports whether late parts reach into a window that is in the head: see shipGroups.
func (h *Head) reachWindow(s model.Signal, late []*local.Part) bool {
	return slices.ContainsFunc(h.groups(s), func(g local.Group) bool {
		times, ok := g.Window()
		return ok && slices.ContainsFunc(late, func(p *local.Part) bool { return p.Info.Range.Overlaps(times) })
	})
}

// shipGroups ships groups of both signals, as many as may go at once, until choose returns no more parts of
// them. It reports whether one is through, and returns those that failed.
//
// Late rows are shipped after all windows that they reach into, also those that are not due: rows of a window
// that stayed in the head would count as newer than the late rows in the bucket, and those of one ship count
// as equally new.
func (h *Head) shipGroups(ctx context.Context, due []signalGroup, choose chooser) (shipped bool, failed []signalGroup, err error) {
	due = h.withReached(due)
	for ctx.Err() == nil {
		var lot []load
		var waiting []signalGroup
		for _, g := range due {
			if h.builtBytes() >= h.o.WindowBytes && len(lot) > 0 || g.group == local.Late && h.reachWindow(g.signal, h.late(g.signal)) {
				waiting = append(waiting, g)
				continue
			}
			l, groupErr := h.load(ctx, g, choose)
			if groupErr != nil {
				h.metrics.shipErrors.Inc()
				failed, err = append(failed, g), errors.Join(err, fmt.Errorf("ship %s: %w", g.group, groupErr))
			} else if len(l.in) > 0 {
				lot, waiting = append(lot, l), append(waiting, g) // the group may have more parts
			}
		}
		if len(lot) == 0 {
			return shipped, failed, err
		}
		done, lotErr := h.shipLot(ctx, lot)
		shipped = shipped || len(done) > 0
		if lotErr != nil {
			for _, l := range lot {
				if !slices.Contains(done, l.signalGroup) {
					failed = append(failed, l.signalGroup)
				}
			}
			return shipped, failed, errors.Join(err, lotErr)
		}
		due = waiting
	}
	return shipped, failed, errors.Join(err, ctx.Err())
}

// withReached adds the windows before late rows that these reach into.
func (h *Head) withReached(due []signalGroup) (all []signalGroup) {
	for _, g := range due {
		if g.group == local.Late {
			for _, w := range h.signalGroups(g.signal) {
				if times, ok := w.group.Window(); ok && h.lateReaches(g.signal, times) && !slices.Contains(due, w) {
					all = append(all, w)
				}
			}
		}
		all = append(all, g)
	}
	return all
}

// late returns the late parts of a signal.
func (h *Head) late(s model.Signal) (in []*local.Part) {
	g := signalGroup{s, local.Late}
	return append(h.marked(g), h.group(s, local.Data, g.group)...)
}

// due reports whether a group must be shipped: a closed window, a window with enough bytes, late rows that
// are many or old, or a ship that a crash or an error has interrupted.
func (h *Head) due(g signalGroup, now int64) bool {
	var bytes int64
	oldest := now
	for _, p := range h.snapshot() {
		if i := &p.Info; i.Signal == g.signal && i.Kind == local.Data && i.Group == g.group {
			if i.Ship != 0 {
				return true
			}
			bytes += i.Bytes
			oldest = min(oldest, i.Created)
		}
	}
	if times, ok := g.group.Window(); ok {
		return h.closed(times, now) || bytes >= h.o.WindowBytes
	}
	return bytes >= h.o.LateBytes || now-oldest >= int64(h.o.LateAge)
}

// markShip returns the parts to ship together: those that an earlier try has marked, or else the oldest ones
// of the group that there is space for, marked now.
//
// Marked parts cannot be divided later, even if the disk has become full: blocks of them may be in the
// bucket already, by names that follow from the parts. So space is reserved before the mark, and until
// the ship is through. Otherwise writes take it while the bucket is away, and then the ship,
// which would make room, never fits again.
func (h *Head) markShip(ctx context.Context, g signalGroup) (in []*local.Part, err error) {
	if in = h.marked(g); len(in) > 0 {
		return in, nil
	}
	if in = h.group(g.signal, local.Data, g.group); len(in) == 0 {
		return nil, nil
	}
	if err := h.roomToBuild(); err != nil {
		return nil, err
	}
	in = h.fitting(h.oneSide(in), h.shipFactor())
	id := shipOf(g, in)
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
func (h *Head) marked(g signalGroup) (in []*local.Part) {
	for _, p := range h.snapshot() {
		if i := &p.Info; i.Signal == g.signal && i.Kind == local.Data && i.Group == g.group && i.Ship != 0 {
			in = append(in, p)
		}
	}
	return in
}
