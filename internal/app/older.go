package app

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// checkAge returns an error of class corrupt if the bucket has rows of this folder's journal that are
// beyond what the parts of the folder cover. Rows are shipped from parts alone, so the folder, or its
// MANIFEST, is an older copy: rows may be missing, and deleted ones may come back.
func (e *Engine) checkAge() error {
	node, epoch := e.head.Journal()
	covered := e.head.Covered()
	for _, b := range e.catalog.Live() {
		for _, s := range b.Sources {
			if s.Node == node && s.Epoch == epoch && s.SeqHi > covered {
				return fmt.Errorf("%s: %w: it is an older copy: its parts cover the journal up to record %d, and block %s in the bucket has record %d",
					e.o.FS.PathJoin(e.o.DataDir, "head", "MANIFEST"), model.ErrCorrupt, covered, b.ID, s.SeqHi)
			}
		}
	}
	return nil
}
