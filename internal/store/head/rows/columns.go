package rows

import "github.com/shaledb/shale/internal/model"

// columns are rows without their keys. The value of a row is a float, or a reference to a blob if its kind
// says so.
type columns struct {
	Times  []int64
	Values []uint64
	starts []int64      // may end early: the other rows have no start timestamp
	kinds  []model.Kind // may end early: the other rows are floats
}

func (c *columns) len() int { return len(c.Times) }

func (c *columns) start(i int) int64 {
	if i < len(c.starts) {
		return c.starts[i]
	}
	return 0
}

func (c *columns) kind(i int) model.Kind {
	if i < len(c.kinds) {
		return c.kinds[i]
	}
	return model.KindFloat
}

// AppendTo appends the rows [i, j) to dst, with their blobs.
func (c *columns) AppendTo(dst *model.Rows, i, j int, b Blobs) {
	if len(c.kinds) == 0 {
		rows := model.Rows{Times: c.Times, Values: c.Values, Starts: c.starts}
		dst.AppendRows(&rows, i, j)
		return
	}
	for ; i < j; i++ {
		if k := c.kind(i); k == model.KindFloat {
			dst.Append(c.Times[i], c.Values[i], c.start(i))
		} else {
			dst.AppendBlob(c.Times[i], k, b.Blob(c.Values[i]), c.start(i))
		}
	}
}
