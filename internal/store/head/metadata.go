package head

import (
	"fmt"
	"strings"

	"github.com/shaledb/shale/internal/model"
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
	if err := h.metadata.Put(tenant, family, m, h.o.Now()); err != nil {
		h.metrics.refusedMetadata.WithLabelValues(strings.TrimPrefix(err.Limit, "limits.metadata-")).Inc()
		return err
	}
	return nil
}

// Metadata emits the description of a metric family, or of all families of a tenant in the order of their
// names if the family is empty, until emit returns false.
func (h *Head) Metadata(tenant, family string, emit func(family string, m model.Metadata) bool) {
	h.metadata.Each(tenant, family, emit)
}

func (h *Head) loadMetadata() {
	if err := h.metadata.Load(h.o.FS, h.o.Dir, h.o.Now()); err != nil {
		h.o.Logger.Error("cannot read the metric metadata; it is collected again from what senders repeat", "err", err)
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
