package head

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/labels"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/head/rows"
	"github.com/shaledb/shale/internal/store/part"
)

// edit is a change of the set of parts.
type edit struct {
	add     []local.Info
	remove  []*local.Part
	ship    []*local.Part // to be marked as being shipped together
	shipped bool          // the removed parts are in the bucket
	covered uint64        // 0: unchanged
	// flushed and flushedLabels are the runs that the new parts replace.
	flushed       []*rows.Run
	flushedLabels []*labels.Run
}

// commit opens the new parts, writes the manifest and shows the change to queries, all or nothing. The files
// of a failed change are deleted by the next start at the latest.
func (h *Head) commit(ctx context.Context, e edit) error {
	h.edits.Lock()
	defer h.edits.Unlock()
	if err := local.SyncDir(h.o.FS, h.o.Dir); err != nil { // the entries of the new files
		h.removeFiles(e.add)
		return err
	}
	added := make([]*local.Part, 0, len(e.add))
	undo := func() {
		for _, p := range added {
			p.Unpin()
		}
		h.removeFiles(e.add)
	}
	for _, info := range e.add {
		p, err := local.Open(ctx, h.o.FS, h.o.Dir, info, &h.pagesRead)
		if err != nil {
			undo()
			return err
		}
		added = append(added, p)
	}
	parts := append(slices.Clip(without(h.snapshot(), e.remove)), added...)
	sortParts(parts)
	m := h.edits.manifest
	m.Parts = nil
	for _, p := range parts {
		info := p.Info
		if slices.Contains(e.ship, p) {
			info.Ship = e.ship[len(e.ship)-1].Info.SeqHi
		}
		m.Parts = append(m.Parts, info)
	}
	m.Covered = max(m.Covered, e.covered)
	m.Fences = h.storedFences(m.Covered)
	m.CheckOrder()
	if err := m.Write(h.o.FS, h.o.Dir); err != nil {
		// Whether the rename is durable is unknown, so the new files must stay until another manifest has
		// taken its place.
		for _, p := range added {
			p.Unpin()
		}
		h.edits.orphans = append(h.edits.orphans, e.add...)
		return err
	}
	h.edits.manifest = m
	h.removeFiles(h.edits.orphans)
	h.edits.orphans = nil
	h.mu.Lock()
	h.mu.parts = parts
	for i, p := range parts {
		// Only a ship changes it, and only merges and ships read it.
		if ship := m.Parts[i].Ship; p.Info.Ship != ship {
			p.Info.Ship = ship
		}
	}
	h.mu.buffers.drop(e.flushed, e.flushedLabels)
	linger := e.shipped && h.o.Linger > 0
	if linger {
		h.lingerLocked(e.remove)
	}
	h.mu.room.Broadcast()
	h.mu.Unlock()
	if h.o.Edited != nil {
		h.o.Edited()
	}
	for _, p := range e.remove {
		if !linger {
			p.Drop()
		}
	}
	return nil
}

// removeFiles deletes files that no manifest names. The next start deletes what cannot be deleted now.
func (h *Head) removeFiles(infos []local.Info) {
	for _, i := range infos {
		_ = h.o.FS.Remove(h.o.FS.PathJoin(h.o.Dir, i.File))
	}
}

// sortParts orders parts by the last batch that they hold. Of two rows with one time the later arrival wins,
// also between groups: late rows arrive after every row of their window, though the late part may have begun
// before the window.
func sortParts(parts []*local.Part) {
	slices.SortStableFunc(parts, func(a, b *local.Part) int {
		if c := cmp.Compare(a.Info.SeqHi, b.Info.SeqHi); c != 0 {
			return c
		}
		return cmp.Compare(a.Info.SeqLo, b.Info.SeqLo)
	})
}

// nextFile names a new file. The next manifest records the number. After a crash a number may be used twice,
// but not a file: the start deletes files that the manifest does not name.
func (h *Head) nextFile(suffix string) string {
	h.edits.Lock()
	defer h.edits.Unlock()
	n := h.edits.manifest.NextFile
	h.edits.manifest.NextFile++
	return fmt.Sprintf("%08d%s", n, suffix)
}

func (h *Head) writerOptions(s model.Signal, seqLo, seqHi uint64) part.WriterOptions {
	return part.WriterOptions{
		Seed: h.o.Seed, Signal: s, Node: h.o.Node, Epoch: h.epoch, SeqLo: seqLo, SeqHi: seqHi, Created: h.o.Now(), Plain: h.o.Plain, Workers: h.o.Workers,
	}
}

// snapshot returns the current parts without references. The caller holds a lock under which the parts that
// it uses stay.
func (h *Head) snapshot() []*local.Part {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.parts
}
