package head

import (
	"context"
	"fmt"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/part"
)

// Flush writes everything that has been applied into parts and truncates the journal: for each signal one
// label part, and one data part for the rows between two deletions. They hold all rows and labels up to one
// sequence number, so a single number says what parts cover.
func (h *Head) Flush(ctx context.Context) error {
	h.flushing.Lock()
	defer h.flushing.Unlock()
	defer h.saveMetadata(false)
	h.mu.Lock()
	e := edit{covered: h.mu.applied}
	e.flushed, e.flushedLabels = h.mu.buffers.beginFlush()
	h.mu.Unlock()
	if len(e.flushed) == 0 && len(e.flushedLabels) == 0 && e.covered <= h.Covered() {
		return nil
	}
	started := time.Now()
	for s := range signals {
		signal := model.Signal(s)
		err := h.flushSides(ctx, signal, &e)
		if err == nil {
			err = h.flushLabels(ctx, signal, &e)
		}
		if err != nil {
			h.removeFiles(e.add)
			return fmt.Errorf("flush: %w", err)
		}
	}
	if err := h.commit(ctx, e); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	h.metrics.flushes.Inc()
	h.metrics.flushSeconds.Observe(time.Since(started).Seconds())
	return h.o.Truncate(e.covered)
}

// Advance says that the next batch will have a sequence number above seq. A gap after the last applied batch
// is recorded, so that the journal is not asked for batches that it never had.
func (h *Head) Advance(ctx context.Context, seq uint64) error {
	h.mu.Lock()
	gap := seq > h.mu.applied
	h.mu.Unlock()
	if !gap {
		return nil
	}
	if err := h.Flush(ctx); err != nil {
		return err
	}
	if err := h.commit(ctx, edit{covered: seq}); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.appliedLocked(seq)
	return nil
}

func (h *Head) flushLabels(ctx context.Context, s model.Signal, e *edit) error {
	var inputs []part.Stream
	for _, r := range e.flushedLabels {
		if r.Signal == s {
			inputs = append(inputs, r.Stream())
		}
	}
	if len(inputs) == 0 {
		return nil
	}
	// Labels that Learn took belong to no batch.
	o := h.writerOptions(s, min(h.Covered()+1, e.covered), e.covered)
	o.Labels = true
	return h.writePart(ctx, o, local.Labels, local.Young, inputs, nil, e)
}

// keepFunc reports whether a series goes into a merged part; nil keeps all.
type keepFunc func(tenant string, k model.Key) (bool, error)

// writePart merges the inputs into one part and adds it to the edit.
func (h *Head) writePart(ctx context.Context, o part.WriterOptions, k local.Kind, g local.Group, inputs []part.Stream, keep keepFunc, e *edit) error {
	file := h.nextFile(local.PartSuffix)
	w, err := local.Create(h.o.FS, h.o.Dir, file, o)
	if err != nil {
		return err
	}
	err = part.Merge(ctx, inputs, func(tenant string, key model.Key, l model.Labels, rows *model.SeriesRows, text []part.Text) error {
		if keep != nil {
			if kept, err := keep(tenant, key); err != nil || !kept {
				return err
			}
		}
		if err := w.Series(tenant, key, l); err != nil {
			return err
		}
		if rows.Len() > 0 {
			if err := w.Rows(rows); err != nil {
				return err
			}
		}
		return w.Text(ctx, text, model.Always())
	}, part.MergeOptions{OnCollision: h.collided})
	if err != nil {
		w.Abandon()
		return err
	}
	meta, size, err := w.Close()
	if err != nil {
		return err
	}
	h.metrics.partBytes.Add(float64(size))
	h.o.Space.Wrote(size)
	e.add = append(e.add, local.NewInfo(file, k, g, meta, size))
	return nil
}

// collided counts and logs two label sets of one key. The merge keeps the first one.
func (h *Head) collided(tenant string, k model.Key, kept, dropped model.Labels) {
	h.metrics.collisions.Inc()
	h.o.Logger.Error("key collision: two label sets have the same key; keeping the first one", "tenant", tenant, "key", k, "kept", kept, "dropped", dropped)
}
