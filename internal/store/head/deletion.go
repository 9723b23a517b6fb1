package head

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/deletion"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/head/query"
	"github.com/shaledb/shale/internal/store/head/rows"
	"github.com/shaledb/shale/internal/store/part"
)

// Deleter makes deletions known to the catalogue of the bucket. Both methods may be called more than once for
// a request.
type Deleter interface {
	// Delete commits the deletion whose control record has the sequence number seq in the head's journal.
	Delete(ctx context.Context, seq uint64, d *deletion.Deletion) error
	// Cancel commits the end of a deletion.
	Cancel(ctx context.Context, tenant, request string) error
}

// fence is a deletion at its place in the journal. It hides rows of records with lower sequence numbers. No
// flush, merge or ship joins rows of both sides, so every part and block lies wholly below or above it. That
// stays so after a cancellation until the catalogue knows of it.
type fence struct {
	query.Fence
	cancelled bool
	// began is when the head applied the record, in Unix nanoseconds.
	began int64
	// committed says that the catalogue knows of the deletion, or of its end. It must not be told once more: the
	// record may have been collected, and a new one would concern blocks with rows of both sides.
	committed atomic.Bool
}

// applyControl takes a control record, whose body the caller of the journal has checked. What has been
// buffered so far is sealed, so that no run has rows of both sides.
func (h *Head) applyControl(seq uint64, b *model.Batch) {
	d := h.changeFences(seq, b)
	if d != nil && h.o.Changes != nil {
		h.o.Changes.Range(d.Signal, d.Range, func(tenant string) bool { return tenant == d.Tenant })
	}
}

// changeFences carries out a control record, and returns the deletion that it is about, or nil.
func (h *Head) changeFences(seq uint64, b *model.Batch) (about *deletion.Deletion) {
	d, cancelled, err := deletion.ParseControl(b.Control, h.o.Filters)
	if err != nil {
		h.o.Logger.Error("skipping a control record of the journal that cannot be read", "record", seq, "err", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.shut { // the next start replays it
		return nil
	}
	h.appliedLocked(seq)
	switch {
	case err != nil:
	case b.Control.Kind == model.ControlDelete:
		h.mu.buffers.sealRows()
		h.mu.buffers.endRuns()
		f := &fence{Fence: query.Fence{Seq: seq, Deletion: &d}, began: h.o.Now()}
		h.mu.fences = append(slices.Clip(h.mu.fences), f)
		about = &d
	default:
		// A copy, because queries may hold the fence.
		h.mu.fences = slices.Clone(h.mu.fences)
		for i, f := range h.mu.fences {
			if f.Deletion.Request == cancelled {
				h.mu.fences[i] = &fence{Fence: f.Fence, cancelled: true, began: f.began}
				about = f.Deletion
			}
		}
	}
	h.wake()
	return about
}

// fences returns the fences in the order of the journal. They must not be changed.
func (h *Head) fences() []*fence {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.fences
}

// viewFencesLocked returns the fences that hide rows of a signal.
func (h *Head) viewFencesLocked(s model.Signal) (all []query.Fence) {
	for _, f := range h.mu.fences {
		if f.Deletion.Signal == s && !f.cancelled && !h.o.FencesOnly {
			all = append(all, f.Fence)
		}
	}
	return all
}

// side returns how many fences lie below a sequence number: rows may be joined if theirs are equal.
func side(fences []*fence, seq uint64) int {
	n := 0
	for _, f := range fences {
		if f.Seq < seq {
			n++
		}
	}
	return n
}

// sameSide reports whether parts that begin with these batches may be joined. The caller holds merging.
func (h *Head) sameSide(fences []*fence, a, b uint64) bool {
	seam := h.merging.seam
	return side(fences, a) == side(fences, b) && (a <= seam) == (b <= seam)
}

// oneSide returns the longest prefix of parts that lie on the same side of every fence, and of the last Trim.
// The parts are oldest first.
func (h *Head) oneSide(in []*local.Part) []*local.Part {
	fences := h.fences()
	for i := range in {
		if !h.sameSide(fences, in[i].Info.SeqLo, in[0].Info.SeqLo) {
			return in[:i]
		}
	}
	return in
}

// CommitDeletions makes every deletion, and every end of one, known to the catalogue. It returns once the
// catalogue hides the rows of blocks, as the head hides its own.
func (h *Head) CommitDeletions(ctx context.Context) error {
	if h.o.Deleter == nil {
		return nil
	}
	var errs []error
	for _, f := range h.fences() {
		if f.committed.Load() {
			continue
		}
		var err error
		if f.cancelled {
			err = h.o.Deleter.Cancel(ctx, f.Deletion.Tenant, f.Deletion.Request)
		} else {
			err = h.o.Deleter.Delete(ctx, f.Seq, f.Deletion)
		}
		f.committed.Store(err == nil)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// labelsHidden is how long the head remembers a deletion after its last row is in the bucket. The label store
// still has the labels of series without rows, which must not be listed, for about as long as idle series are
// known.
func (h *Head) labelsHidden() time.Duration { return 2 * h.o.IdleAfter }

// dropFences forgets the deletions that concern no row of the head any more and are in the catalogue. The
// next manifest leaves them out.
func (h *Head) dropFences(ctx context.Context) error {
	h.mu.Lock()
	now, drop := h.o.Now(), []*fence(nil)
	for _, f := range h.mu.fences {
		old := now-f.began > int64(h.labelsHidden()) || now < f.began
		if f.cancelled || old && !h.holdsBelowLocked(f) {
			drop = append(drop, f)
		}
	}
	h.mu.Unlock()
	if len(drop) == 0 {
		return nil
	}
	if err := h.CommitDeletions(ctx); err != nil {
		return err
	}
	h.mu.Lock()
	h.mu.fences = without(h.mu.fences, drop)
	h.mu.Unlock()
	return nil
}

// holdsBelowLocked reports whether the head has rows of the signal of a deletion that came before it.
func (h *Head) holdsBelowLocked(f *fence) bool {
	for _, r := range h.mu.buffers.runs[f.Deletion.Signal] {
		if r.SeqLo < f.Seq {
			return true
		}
	}
	return slices.ContainsFunc(h.mu.parts, func(p *local.Part) bool {
		return p.Info.Kind == local.Data && p.Info.Signal == f.Deletion.Signal && p.Info.SeqLo < f.Seq
	})
}

// Holds reports whether the head has rows that a deletion may hide: those of its tenant, its signal and its
// times that came before it.
func (h *Head) Holds(request string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.mu.fences {
		d := f.Deletion
		if d.Request != request || f.cancelled {
			continue
		}
		if slices.ContainsFunc(h.mu.buffers.runs[d.Signal], func(r *rows.Run) bool { return r.SeqLo < f.Seq }) {
			return true
		}
		for _, p := range h.mu.parts {
			if i := &p.Info; i.Kind != local.Data || i.Signal != d.Signal || i.SeqLo >= f.Seq {
				continue
			}
			if t := p.Reader.Meta().Tenant(d.Tenant); t != nil && t.Range.Overlaps(d.Range) {
				return true
			}
		}
	}
	return false
}

// storedFences returns the fences for a manifest that covers the journal up to a sequence number.
func (h *Head) storedFences(covered uint64) []local.Fence {
	var all []local.Fence
	for _, f := range h.fences() {
		if f.Seq > covered {
			continue // it is in the journal
		}
		if e, err := f.Deletion.Entry(); err == nil { // it was read from one
			all = append(all, local.Fence{Seq: f.Seq, Cancelled: f.cancelled, Committed: f.committed.Load(), Began: f.began, Deletion: e})
		}
	}
	return all
}

// openFences takes over the fences of the manifest.
func (h *Head) openFences(m *local.Manifest) error {
	for _, s := range m.Fences {
		d, err := s.Deletion.Deletion(h.o.Filters)
		if err != nil {
			return err
		}
		f := &fence{Fence: query.Fence{Seq: s.Seq, Deletion: &d}, cancelled: s.Cancelled, began: s.Began}
		f.committed.Store(s.Committed)
		h.mu.fences = append(h.mu.fences, f)
	}
	return nil
}

// flushSides writes the runs of a signal into parts: one for each side of the fences that has rows.
func (h *Head) flushSides(ctx context.Context, s model.Signal, e *edit) error {
	fences := h.fences()
	var in []part.Stream
	var lo, hi uint64
	end := func() error {
		if len(in) == 0 {
			return nil
		}
		err := h.writePart(ctx, h.writerOptions(s, lo, hi), local.Data, local.Young, in, nil, e)
		in = nil
		return err
	}
	for _, r := range e.flushed {
		if r.Signal != s {
			continue
		}
		if len(in) > 0 && side(fences, r.SeqLo) != side(fences, lo) {
			if err := end(); err != nil {
				return err
			}
		}
		if len(in) == 0 {
			lo = r.SeqLo
		}
		in, hi = append(in, r.Stream()), r.SeqHi
	}
	return end()
}
