package deletions

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/remote/wire"
	"github.com/shaledb/shale/internal/store/deletion"
	"github.com/shaledb/shale/internal/store/head/query"
)

// Fences reads the deletions that a query names, in the order of their places in the journal.
func Fences(hide []wire.Hidden, filters deletion.Compiler) (all []query.Fence, err error) {
	for _, x := range hide {
		var e deletion.Entry
		if err := json.Unmarshal(x.Terms, &e); err != nil {
			return nil, fmt.Errorf("%w: a deletion: %v", model.ErrInvalid, err)
		}
		d, err := e.Deletion(filters)
		if err != nil {
			return nil, err
		}
		all = append(all, query.Fence{Seq: x.Seq, Deletion: &d})
	}
	slices.SortFunc(all, func(a, b query.Fence) int { return cmp.Compare(a.Seq, b.Seq) })
	return all, nil
}
