package head

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/repair"
	"github.com/shaledb/shale/internal/store/head/labels"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/head/metadata"
	"github.com/shaledb/shale/internal/store/head/rows"
	"github.com/shaledb/shale/internal/store/known"
)

// Open reads the manifest and opens the parts that it names. The caller then replays the journal from
// Covered()+1 before anything else (see [Head.Recover]), and calls RemoveLeftovers and Start.
func Open(ctx context.Context, o Options) (*Head, error) {
	o.setDefaults()
	if err := o.FS.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", model.ErrTransient, o.Dir, err)
	}
	if err := local.SyncDir(o.FS, o.FS.PathDir(o.Dir)); err != nil {
		return nil, err
	}
	k, err := known.New(o.KnownBytes)
	if err != nil {
		return nil, err
	}
	h := &Head{o: o, tenants: newTenants(o.Tenants), known: k, blockSeries: maxBlockSeries}
	h.background.urge, h.background.flushed = make(chan struct{}, 1), make(chan struct{}, 1)
	h.background.running, h.background.stop = context.WithCancel(context.Background())
	h.merging.built, h.merging.kept = make(map[shipID][]Block), make(map[string]bool)
	h.merging.reserved = make(map[shipID]*reservation)
	h.mu.room = sync.NewCond(&h.mu.Mutex)
	h.mu.buffers.rows, h.mu.buffers.labels = rows.NewBuffer(), labels.NewBuffer()
	h.metadata = metadata.New(o.Metadata)
	h.limits = creationLimits{total: newCreationLimit(o.NewSeries), tenants: make(map[uint16]*bucketOfTokens)}
	h.resolving.New = func() any { return new(resolver) }
	// A folder without a copy of the manifest is new, or of a version that wrote METADATA when it had some.
	_, noCopy := o.FS.Stat(o.FS.PathJoin(o.Dir, local.ManifestName+local.CopySuffix))
	err = h.openParts(ctx)
	if err != nil {
		h.background.stop()
		h.release()
		return nil, err
	}
	h.reserveMarked()
	h.loadMetadata(errors.Is(noCopy, os.ErrNotExist))
	h.metrics = newMetrics(o.Registerer, h)
	return h, nil
}

// openParts opens the parts of the manifest.
func (h *Head) openParts(ctx context.Context) error {
	m, damaged, err := local.ReadManifest(h.o.FS, h.o.Dir)
	if err != nil {
		return err
	}
	files, err := h.o.FS.List(h.o.Dir)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", model.ErrTransient, h.o.Dir, err)
	}
	if m == nil {
		if m, err = h.firstManifest(files); err != nil {
			return err
		}
	}
	if m.Seed != h.o.Seed {
		return fmt.Errorf("%w: the data folder %s has key seed %016x, but the bucket has %016x: they belong to different stores", model.ErrInvalid, h.o.Dir, uint64(m.Seed), uint64(h.o.Seed))
	}
	h.edits.manifest, h.mu.applied, h.epoch = *m, m.Covered, m.Epoch
	h.o.Node = m.Node // a renamed machine must not ship the same rows under another name
	if err := h.openFences(m); err != nil {
		return fmt.Errorf("%s: %w", h.o.FS.PathJoin(h.o.Dir, local.ManifestName), err)
	}
	named := map[string]bool{}
	for _, name := range []string{local.ManifestName, metadata.FileName} {
		named[name], named[name+local.CopySuffix] = true, true
	}
	for _, info := range m.Parts {
		if err := info.Group.Check(); err != nil {
			return fmt.Errorf("part %s: %w", info.File, err)
		}
		p, err := local.Open(ctx, h.o.FS, h.o.Dir, info, &h.pagesRead)
		if err != nil {
			return err
		}
		h.mu.parts = append(h.mu.parts, p)
		named[info.File] = true
		if p.Reader.Meta().Seed != h.o.Seed {
			return fmt.Errorf("%w: part %s: expected key seed %016x, got %016x", model.ErrCorrupt, info.File, uint64(h.o.Seed), uint64(p.Reader.Meta().Seed))
		}
		for _, t := range p.Reader.Meta().Tenants {
			h.tenants.must(t.Name)
		}
	}
	for _, f := range files {
		if !named[f] {
			h.leftovers = append(h.leftovers, f)
			// New files must not get the name of a leftover.
			var n uint64
			if _, err := fmt.Sscanf(f, "%d.", &n); err == nil && n < 1<<62 {
				h.edits.manifest.NextFile = max(h.edits.manifest.NextFile, n+1)
			}
		}
	}
	if damaged != nil {
		h.o.Logger.Error("the manifest is damaged or missing; using its copy", "file", h.o.FS.PathJoin(h.o.Dir, local.ManifestName), "err", damaged)
		h.keepDamaged(local.ManifestName, repair.Note{Why: damaged.Error()})
		if err := m.Write(h.o.FS, h.o.Dir); err != nil {
			h.o.Logger.Error("cannot write the manifest; a later flush tries again", "err", err)
		}
	} else if err := local.CheckBoth(h.o.FS, h.o.Dir, local.ManifestName); err != nil {
		h.o.Logger.Warn("writing the copy of the manifest once more", "why", err)
		if err := m.Write(h.o.FS, h.o.Dir); err != nil {
			h.o.Logger.Error("cannot write the copy of the manifest; a later flush tries again", "err", err)
		}
	}
	return nil
}

// RemoveLeftovers deletes the files that no manifest named when the head was opened, as a crash leaves them.
// It is called once the journal has been replayed: if an old manifest was put in place, that fails, and the
// files must not be gone then.
func (h *Head) RemoveLeftovers() {
	for _, f := range h.leftovers {
		file := h.o.FS.PathJoin(h.o.Dir, f)
		h.o.Logger.Info("deleting a file that no manifest names, as a crash leaves it", "file", file)
		if err := h.o.FS.Remove(file); err != nil {
			h.o.Logger.Warn("cannot delete a file that no manifest names; the next start tries again", "file", file, "err", err)
		}
	}
	h.leftovers = nil
}

// firstManifest makes the manifest of a new folder. A folder that has parts had a manifest; without it the
// parts must not be deleted.
func (h *Head) firstManifest(files []string) (*local.Manifest, error) {
	for _, f := range files {
		if strings.HasSuffix(f, local.PartSuffix) {
			return nil, fmt.Errorf("%w: %s holds parts such as %s but no %s that names them", model.ErrCorrupt, h.o.Dir, f, local.ManifestName)
		}
	}
	epoch := h.o.Epoch
	if epoch == 0 {
		epoch = uint64(h.o.Now())
	}
	m := &local.Manifest{Version: local.ManifestVersion, Seed: h.o.Seed, Node: h.o.Node, Epoch: epoch, NextFile: 1}
	return m, m.Write(h.o.FS, h.o.Dir)
}

// Recover applies the batches of the journal that are in no part. Replay must call its function with every
// batch from a sequence number on, in order. Recover is called between Open and Start.
//
// Buffers that fill are flushed meanwhile, so that a journal of any length takes no more memory than normal
// operation. Rows that are left in the buffers at the end are flushed when the server already serves.
func (h *Head) Recover(ctx context.Context, replay func(ctx context.Context, from uint64, fn func(seq uint64, b *model.Batch) error) error) error {
	h.startFlushing()
	unhook := context.AfterFunc(ctx, h.Shut) // Apply may be waiting for disk space
	defer unhook()
	return replay(ctx, h.Covered()+1, func(seq uint64, b *model.Batch) error {
		h.Apply(seq, b)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%w: %w", model.ErrClosed, err)
		}
		return nil
	})
}
