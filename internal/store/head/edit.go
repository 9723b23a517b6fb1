package head

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// edit is a change of the set of parts.
type edit struct {
	add     []partInfo
	remove  []*localPart
	ship    []*localPart // to be marked as being shipped together
	covered uint64       // 0: unchanged
	// flushed are the runs that the new parts replace.
	flushed       []*run
	flushedLabels []*labelRun
}

// commit opens the new parts, writes the manifest and shows the change to queries, all or nothing. Files
// of a change that failed are deleted by the next start at the latest.
func (h *Head) commit(ctx context.Context, e edit) error {
	h.edits.Lock()
	defer h.edits.Unlock()
	if err := syncDir(h.o.FS, h.o.Dir); err != nil { // the entries of the new files
		h.removeFiles(e.add)
		return err
	}
	added := make([]*localPart, 0, len(e.add))
	undo := func() {
		for _, p := range added {
			p.unpin()
		}
		h.removeFiles(e.add)
	}
	for _, info := range e.add {
		p, err := openLocalPart(ctx, h.o.FS, h.o.Dir, info, &h.pagesRead)
		if err != nil {
			undo()
			return err
		}
		added = append(added, p)
	}
	parts := append(without(h.snapshot(), e.remove), added...)
	sortParts(parts)
	m := h.manifest
	m.Parts = nil
	for _, p := range parts {
		info := p.info
		if slices.Contains(e.ship, p) {
			info.Ship = e.ship[len(e.ship)-1].info.SeqHi
		}
		m.Parts = append(m.Parts, info)
	}
	m.Covered = max(m.Covered, e.covered)
	if invariants {
		checkParts(&m)
	}
	if err := m.write(h.o.FS, h.o.Dir); err != nil {
		// Whether the rename is durable is unknown, so the new files must stay until another manifest has taken its place.
		for _, p := range added {
			p.unpin()
		}
		h.orphans = append(h.orphans, e.add...)
		return err
	}
	h.manifest = m
	h.removeFiles(h.orphans)
	h.orphans = nil
	h.mu.Lock()
	h.parts = parts
	for i, p := range parts {
		if ship := m.Parts[i].Ship; p.info.Ship != ship { // only a ship writes it, and only a merge or a ship reads it
			p.info.Ship = ship
		}
	}
	for s := range signals {
		h.runs[s] = withoutRuns(h.runs[s], e.flushed)
		h.labelRuns[s] = withoutRuns(h.labelRuns[s], e.flushedLabels)
	}
	for _, r := range e.flushed {
		h.rowBytes -= r.bytes
		h.blobBytes -= r.blobBytes
	}
	for _, r := range e.flushedLabels {
		h.lblBytes -= r.bytes
	}
	h.room.Broadcast()
	h.mu.Unlock()
	for _, p := range e.remove {
		p.drop()
	}
	return nil
}

// removeFiles deletes files that no manifest names. What cannot be deleted is deleted by the next start.
func (h *Head) removeFiles(infos []partInfo) {
	for _, i := range infos {
		_ = h.o.FS.Remove(h.o.FS.PathJoin(h.o.Dir, i.File))
	}
}

func without(parts, remove []*localPart) []*localPart {
	kept := make([]*localPart, 0, len(parts)+4)
	for _, p := range parts {
		if !slices.Contains(remove, p) {
			kept = append(kept, p)
		}
	}
	return kept
}

func withoutRuns[R any](runs, remove []*R) []*R {
	if len(remove) == 0 {
		return runs
	}
	var kept []*R
	for _, r := range runs {
		if !slices.Contains(remove, r) {
			kept = append(kept, r)
		}
	}
	return kept
}

// sortParts orders parts by the last batch that they hold, which of two rows of one time gives the one that came later,
// also between groups: late rows come after every row that a window has taken, though the late part as a whole may have
// begun before the window.
func sortParts(parts []*localPart) {
	slices.SortStableFunc(parts, func(a, b *localPart) int {
		if c := cmp.Compare(a.info.SeqHi, b.info.SeqHi); c != 0 {
			return c
		}
		return cmp.Compare(a.info.SeqLo, b.info.SeqLo)
	})
}

// partSuffix ends the names of parts.
const partSuffix = ".part"

// nextFile names a new file. The number is written with the next manifest; a number that a crash makes come again
// meets no file, since the start deletes what the manifest does not name.
func (h *Head) nextFile(suffix string) string {
	h.edits.Lock()
	defer h.edits.Unlock()
	n := h.manifest.NextFile
	h.manifest.NextFile++
	return fmt.Sprintf("%08d%s", n, suffix)
}

func (h *Head) writerOptions(s model.Signal, seqLo, seqHi uint64) part.WriterOptions {
	return part.WriterOptions{
		Seed: h.o.Seed, Signal: s, Node: h.o.Node, Epoch: h.epoch, SeqLo: seqLo, SeqHi: seqHi, Created: h.o.Now(),
	}
}

// snapshot returns the parts as they are, without references: for those who hold a lock under which the parts that
// they use stay.
func (h *Head) snapshot() []*localPart {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.parts
}

// infoOf describes a finished part.
func infoOf(file string, k kind, g group, m part.Meta, size int64) partInfo {
	i := partInfo{
		File: file, Kind: k, Signal: m.Signal, Group: g, SeqLo: m.SeqLo, SeqHi: m.SeqHi,
		Bytes: size, Series: m.Series, Rows: m.Samples + m.Exemplars + m.Text, Range: m.Range, Created: m.Created,
	}
	if i.Rows == 0 {
		i.Range = model.TimeRange{Min: math.MaxInt64, Max: math.MinInt64}
	}
	return i
}
