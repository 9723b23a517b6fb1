package text

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/parttest"
)

// forgedNames is a page of one row whose metadata has n names.
func forgedNames(n int) []byte {
	var c column.IntCoder
	p := binary.AppendUvarint([]byte{byte(model.Text), textMetadata}, 1)
	for _, x := range []int64{1, 5, 0} {
		p = c.Append(p, []int64{x})
	}
	p = c.Append(binary.AppendUvarint(p, 1), []int64{1})
	p = binary.AppendUvarint(p, uint64(n))
	for i := range n {
		p = c.Append(column.AppendBytes(p, fmt.Sprintf("%05x", i)), []int64{1})
		p = append(c.Append(append(p, metadataPlain), []int64{1}), 'v')
	}
	return p
}

// TestForgedNames: a page cannot have more names than the longest set. Its names are charged before they are
// decoded.
func TestForgedNames(t *testing.T) {
	for _, c := range []struct {
		names int
		ok    bool
		most  uint64
	}{{1000, true, 1 << 20}, {maxTextNames, true, 40 << 20}, {maxTextNames + 1, false, 1 << 20}, {900_000, false, 1 << 20}} {
		page := forgedNames(c.names)
		var u unit
		var err error
		if n := alloctest.Bytes(func() { err = u.decode(page) }); n > c.most || c.ok != (err == nil) || !c.ok && !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("%d names: %d bytes allocated, %v", c.names, n, err)
		}
	}
	page := forgedNames(maxTextNames)
	limit := fmt.Errorf("%w: enough", model.ErrLimit)
	u := unit{sets: metadataDecoder{charge: func(int64) error { return limit }}}
	var err error
	if n := alloctest.Bytes(func() { err = u.decode(page) }); !errors.Is(err, limit) || n > 1<<20 {
		t.Errorf("%d bytes allocated, %v", n, err)
	}
	sum := int64(0)
	u = unit{sets: metadataDecoder{charge: func(n int64) error { sum += n; return nil }}}
	if parttest.Must(t, u.decode(page)); sum < int64(len(u.metadata[0])) || sum > 2*int64(len(u.metadata[0])) {
		t.Errorf("%d bytes are charged for a set of %d", sum, len(u.metadata[0]))
	}
}
