package series

import (
	"context"

	"github.com/shaledb/shale/internal/store/part/column"
)

// Counts emits the labels of the tenant's series, ascending by name and value, with the number of series that
// have each; of all names, or of one. A label may come several times, one after the other, with a part of its
// series each. What emit gets is valid until it returns; its error ends the walk and is returned.
//
// It reads the directories of postings and looks at no series, so it takes time for each label, not for each
// series.
func (r Lister) Counts(ctx context.Context, tenant, name string, emit func(name, value []byte, series uint64) error) error {
	t := r.Meta().Tenant(tenant)
	if t == nil {
		return nil
	}
	if !r.Meta().Labels {
		return column.Invalid("labels counted of a part without labels")
	}
	w := newPostingWalk(ctx, r.Reader, t)
	for ok := w.seek([]byte(name), nil); ok; ok = w.next() {
		if name != "" && string(w.dir.name) != name {
			break
		}
		if err := emit(w.dir.name, w.dir.value, uint64(w.dir.count)); err != nil {
			return err
		}
	}
	return w.err
}
