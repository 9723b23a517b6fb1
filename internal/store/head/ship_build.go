package head

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/repair"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/part"
)

// maxBlockSeries bounds the series of a block, so that a bitmap of them takes at most 2 MB. Tests set
// Head.blockSeries lower.
const maxBlockSeries = 1 << 24

// build makes blocks of the parts.
func (h *Head) build(ctx context.Context, s model.Signal, in []*local.Part) ([]Block, error) {
	sw := &shipWriter{h: h, ctx: ctx}
	sw.options = h.writerOptions(s, in[0].Info.SeqLo, in[len(in)-1].Info.SeqHi)
	sw.options.Labels, sw.options.Level = true, part.Dense
	// The same input gives the same bytes.
	sw.options.Created = 0
	for _, p := range in {
		sw.options.Created = max(sw.options.Created, p.Info.Created)
	}
	err := part.Merge(ctx, streams(in), sw.add, part.MergeOptions{})
	if err == nil {
		err = sw.cut()
	}
	if err == nil && sw.unlabelled > 0 {
		err = h.keepUnlabelled(in, sw.unlabelled)
	}
	if err != nil {
		sw.abandon()
		return nil, err
	}
	return sw.blocks, nil
}

// keepBuilt keeps finished blocks for the next attempt, unless the error says that one may be bad. No
// manifest names the files, so the next start removes them.
func (h *Head) keepBuilt(id shipID, blocks []Block, err error) {
	if len(blocks) > 0 && errors.Is(err, model.ErrTransient) {
		return
	}
	delete(h.merging.built, id)
	h.removeBlocks(blocks)
}

// builtBytes returns the size of the finished blocks that are not in the bucket.
func (h *Head) builtBytes() (bytes int64) {
	for _, blocks := range h.merging.built {
		for _, b := range blocks {
			bytes += b.Size
		}
	}
	return bytes
}

// roomToBuild refuses to build more blocks while many wait for the bucket: a block takes as much disk space
// as its parts, which stay.
func (h *Head) roomToBuild() error {
	bytes := h.builtBytes()
	if bytes < h.o.WindowBytes {
		return nil
	}
	return fmt.Errorf("%w: %d bytes of finished blocks wait for the bucket and the limit is %d; building no more until it takes them", model.ErrTransient, bytes, h.o.WindowBytes)
}

// dropBuilt deletes finished blocks unless a ship is running: they can be built again, and the disk may need
// the space.
func (h *Head) dropBuilt() {
	if !h.merging.TryLock() {
		return
	}
	defer h.merging.Unlock()
	for _, blocks := range h.merging.built {
		h.removeBlocks(blocks)
	}
	clear(h.merging.built)
}

// removeBlocks deletes files of blocks. The next start deletes those that are left.
func (h *Head) removeBlocks(blocks []Block) {
	for _, b := range blocks {
		_ = h.o.FS.Remove(b.File)
	}
}

// shipWriter writes the blocks of one ship, cut by number of series.
type shipWriter struct {
	h       *Head
	ctx     context.Context
	options part.WriterOptions
	tenant  string
	labels  *labelWalks

	cuts     int
	w        *local.Writer
	series   int
	min, max model.Key
	// unlabelled counts the series that are left out since their labels were lost.
	unlabelled int

	blocks []Block // finished
}

func (sw *shipWriter) add(tenant string, k model.Key, _ model.Labels, rows *model.SeriesRows, text []part.Text) error {
	l, err := sw.labelsOf(tenant, k)
	if err != nil {
		return err
	}
	if l == nil {
		sw.unlabelled++
		return nil
	}
	if sw.w != nil && sw.series == sw.h.blockSeries {
		if err := sw.cut(); err != nil {
			return err
		}
	}
	if sw.w == nil {
		if err := sw.begin(); err != nil {
			return err
		}
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
	if err := sw.w.Rows(rows); err != nil {
		return err
	}
	return sw.w.Text(sw.ctx, text, model.Always())
}

// labelsOf finds the labels of a key. It returns nil for a key whose labels were in a part that was set
// aside. Otherwise a key without labels is a bug. It stops the ship before such a block is uploaded; the rows
// stay readable in the head.
func (sw *shipWriter) labelsOf(tenant string, k model.Key) (model.Labels, error) {
	if sw.labels == nil {
		sw.labels = sw.h.labelWalks(sw.ctx, sw.options.Signal)
		sw.labels.enter(tenant)
	} else if tenant != sw.tenant {
		sw.labels.enter(tenant)
	}
	sw.tenant = tenant
	for _, w := range sw.labels.walks {
		l, err := w.Seek(sw.ctx, k)
		if err != nil || l != nil {
			return l, err
		}
	}
	if sw.h.o.LabelsLost() {
		return nil, nil
	}
	return nil, fmt.Errorf("%w: tenant %q: key %s has rows but no labels", model.ErrCorrupt, tenant, k)
}

func (sw *shipWriter) begin() (err error) {
	sw.series = 0
	sw.w, err = local.Create(sw.h.o.FS, sw.h.o.Dir, sw.h.nextFile(".block"), sw.options)
	return err
}

// cut finishes a block.
func (sw *shipWriter) cut() error {
	if sw.w == nil {
		return nil
	}
	w := sw.w
	sw.w = nil
	meta, size, err := w.Close()
	if err != nil {
		return err
	}
	sw.h.o.Space.Wrote(size)
	sw.blocks = append(sw.blocks, Block{Meta: meta, KeyMin: sw.min, KeyMax: sw.max, Cut: sw.cuts, File: w.Path, Size: size})
	sw.cuts++
	return nil
}

// abandon deletes what has been written.
func (sw *shipWriter) abandon() {
	if sw.w != nil {
		sw.w.Abandon()
	}
	sw.h.removeBlocks(sw.blocks)
}

// keepUnlabelled links parts into the folder set-aside, before a ship drops them that leaves out series whose
// labels were lost. The caller holds merging.
func (h *Head) keepUnlabelled(in []*local.Part, series int) error {
	root := h.o.FS.PathDir(h.o.Dir)
	for _, p := range in {
		if h.merging.kept[p.Info.File] {
			continue // an earlier attempt has
		}
		n := repair.Note{
			Why: fmt.Sprintf("this part and those shipped with it have rows of %d series without labels, since a part with labels was set aside", series),
			At:  time.Unix(0, h.o.Now()),
			Lost: &repair.Lost{
				What: repair.Rows, Signal: p.Info.Signal, Range: p.Info.Range, Text: fmt.Sprintf("series of %s whose labels were lost", p.Info.Signal),
			},
		}
		if err := repair.Keep(h.o.FS, root, h.o.FS.PathJoin(h.o.FS.PathBase(h.o.Dir), p.Info.File), n); err != nil {
			return err
		}
		h.merging.kept[p.Info.File] = true
		h.o.Logger.Error("shipping without series whose labels were lost; a copy of the part is in the folder set-aside", "part", p.Info.File, "series", series)
	}
	h.o.SetAside()
	return nil
}
