package head

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/known"
	"github.com/shaledb/shale/internal/store/head/labels"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/head/metadata"
	"github.com/shaledb/shale/internal/store/head/rows"
)

// Open reads the manifest, opens the parts that it names and deletes all other files. The caller then replays
// the journal from Covered()+1 before anything else (see [Head.Recover]), and calls Start.
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
	h.merging.built = make(map[shipID][]Block)
	h.mu.room = sync.NewCond(&h.mu.Mutex)
	h.mu.buffers.rows, h.mu.buffers.labels = rows.NewBuffer(), labels.NewBuffer()
	h.metadata = metadata.New(o.Metadata)
	h.limits = creationLimits{total: newCreationLimit(o.NewSeries), tenant: newCreationLimit(o.TenantNewSeries), tenants: make(map[uint16]*bucketOfTokens)}
	h.resolving.New = func() any { return new(resolver) }
	if err := h.openParts(ctx); err != nil {
		h.background.stop()
		h.release()
		return nil, err
	}
	h.loadMetadata()
	h.metrics = newMetrics(o.Registerer, h)
	return h, nil
}

func (h *Head) openParts(ctx context.Context) error {
	m, err := local.ReadManifest(h.o.FS, h.o.Dir)
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
	named := map[string]bool{local.ManifestName: true, metadata.FileName: true}
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
			if err := h.o.FS.Remove(h.o.FS.PathJoin(h.o.Dir, f)); err != nil {
				return fmt.Errorf("%w: delete unused file %s: %w", model.ErrTransient, f, err)
			}
		}
	}
	return nil
}

// firstManifest makes the manifest of a new folder. A folder that has parts had a manifest; without it the
// parts must not be deleted.
func (h *Head) firstManifest(files []string) (*local.Manifest, error) {
	for _, f := range files {
		if strings.HasSuffix(f, local.PartSuffix) {
			return nil, fmt.Errorf("%w: %s holds parts such as %s but no %s that names them", model.ErrCorrupt, h.o.Dir, f, local.ManifestName)
		}
	}
	m := &local.Manifest{Version: local.ManifestVersion, Seed: h.o.Seed, Node: h.o.Node, Epoch: uint64(h.o.Now()), NextFile: 1}
	return m, m.Write(h.o.FS, h.o.Dir)
}
