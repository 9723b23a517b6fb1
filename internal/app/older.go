package app

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// checkAge returns an error of class corrupt if ships in the bucket cover this folder's journal beyond the
// parts of the folder. Rows are shipped from parts alone, so the folder, or its MANIFEST, is an older copy:
// rows may be missing, and deleted ones may come back.
func (e *Engine) checkAge() error {
	covered := e.head.Covered()
	shipped := e.catalog.Covered(e.head.Journal())
	if e.shipper.covered = shipped.To; shipped.To > covered {
		return fmt.Errorf("%s: %w: it is an older copy: its parts cover the journal up to record %d, and ships in the bucket up to record %d",
			e.o.FS.PathJoin(e.o.DataDir, "head", "MANIFEST"), model.ErrCorrupt, covered, shipped.To)
	}
	return nil
}
