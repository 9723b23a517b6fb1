package head

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/repair"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/head/metadata"
)

// PutMetadata keeps the description of a metric family. It is written to disk with a flush, some time later:
// senders repeat it, so a crash loses nothing for long. Errors: class invalid for texts that are too long, a
// [model.LimitError] when the map is full.
func (h *Head) PutMetadata(tenant, family string, m model.Metadata) error {
	if len(family)+len(m.Type)+len(m.Help)+len(m.Unit) > metadata.MaxTextBytes {
		h.metrics.refusedMetadata.WithLabelValues("too_long").Inc()
		return fmt.Errorf("%w: metadata of %.100q exceeds the limit of %d bytes", model.ErrInvalid, family, metadata.MaxTextBytes)
	}
	if _, err := h.tenants.admit(tenant); err != nil {
		h.metrics.refusedMetadata.WithLabelValues("tenants").Inc()
		return err
	}
	err := h.metadata.Put(tenant, family, m, h.o.Now())
	if full := (*model.LimitError)(nil); errors.As(err, &full) {
		h.metrics.refusedMetadata.WithLabelValues(strings.TrimPrefix(full.Limit, "limits.metadata-")).Inc()
	}
	return err
}

// Metadata emits the description of a metric family, or of all families of a tenant in the order of their
// names if the family is empty, until emit returns false.
func (h *Head) Metadata(tenant, family string, emit func(family string, m model.Metadata) bool) {
	h.metadata.Each(tenant, family, emit)
}

const lostMetadata = "type, help and unit of metric families that senders have not repeated yet"

// loadMetadata reads the metadata file. never says that the folder has had none yet.
func (h *Head) loadMetadata(never bool) {
	damaged, err := h.metadata.Load(h.o.FS, h.o.Dir, h.o.Now())
	file := h.o.FS.PathJoin(h.o.Dir, metadata.FileName)
	switch {
	case never && errors.Is(err, os.ErrNotExist):
	case err == nil && damaged == nil:
		err := local.CheckBoth(h.o.FS, h.o.Dir, metadata.FileName)
		if err == nil {
			return
		}
		h.o.Logger.Warn("writing the copy of the metric metadata once more", "why", err)
	case err == nil:
		h.o.Logger.Error("the metric metadata is damaged; using its copy", "file", file, "err", damaged)
		h.keepDamaged(metadata.FileName, repair.Note{Why: damaged.Error()})
	default:
		h.o.Logger.Error("the metric metadata is damaged or missing; it is collected again from what senders repeat", "file", file, "err", err)
		h.keepDamaged(metadata.FileName, repair.Note{Why: err.Error(), Lost: &repair.Lost{
			What: repair.Metadata, Text: lostMetadata, Signal: model.Metrics,
		}})
	}
	if err := h.metadata.Replace(h.o.FS, h.o.Dir); err != nil {
		h.o.Logger.Error("cannot write the metric metadata; a later flush tries again", "file", file, "err", err)
	}
}

// keepDamaged puts a damaged file of the folder, which is replaced, into set-aside, with a note.
func (h *Head) keepDamaged(name string, n repair.Note) {
	root, file := h.o.FS.PathDir(h.o.Dir), h.o.FS.PathJoin(h.o.FS.PathBase(h.o.Dir), name)
	n.At = time.Unix(0, h.o.Now())
	set := repair.Keep
	if _, err := h.o.FS.Stat(h.o.FS.PathJoin(h.o.Dir, name)); errors.Is(err, os.ErrNotExist) {
		set = repair.Record
	}
	if err := set(h.o.FS, root, file, n); err != nil {
		h.o.Logger.Error("cannot set a damaged file aside", "file", h.o.FS.PathJoin(h.o.Dir, name), "err", err)
	}
}

// saveMetadata writes the metadata file if it is due. It returns no error: a flush must not fail because of
// it, and the next one tries again.
func (h *Head) saveMetadata(force bool) {
	if err := h.metadata.Save(h.o.FS, h.o.Dir, h.o.Now(), force); err != nil {
		h.metrics.workErrors.Inc()
		h.o.Logger.Error("cannot write the metric metadata; the next flush tries again", "err", err)
	}
}
