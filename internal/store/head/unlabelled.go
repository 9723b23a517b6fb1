package head

import (
	"fmt"
	"time"

	"github.com/shaledb/shale/internal/repair"
	"github.com/shaledb/shale/internal/store/head/local"
)

// keepUnlabelled links parts into the folder set-aside, before a ship drops them that leaves out series whose
// labels were lost. The caller holds merging.
func (h *Head) keepUnlabelled(in []*local.Part, series int) error {
	root := h.o.FS.PathDir(h.o.Dir)
	for _, p := range in {
		if h.merging.kept[p.Info.File] {
			continue // an earlier attempt has
		}
		n := repair.Note{
			Why: fmt.Sprintf("%d series of this part and those shipped with it have rows but no labels, since a part with labels was set aside", series),
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
