package lines

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/parttest"
)

// forgedLines is a page of lines that claims so many bytes and so many values, all equal.
func forgedLines(t *testing.T, raw, visits, fragments int, lengths, next int64) []byte {
	t.Helper()
	var c column.IntCoder
	column := func(b []byte, x int64, n int) []byte {
		xs := make([]int64, n)
		for i := range xs {
			xs[i] = x
		}
		return c.Append(b, xs)
	}
	soft := binary.AppendUvarint([]byte{1, fieldEnd}, uint64(visits))
	soft = binary.AppendUvarint(soft, uint64(fragments))
	soft = column(soft, lengths, fragments)
	soft = column(soft, 0, fragments)
	soft = column(soft, next, visits)
	page := append(binary.AppendUvarint([]byte{Codec}, uint64(raw)), 0)
	page, err := file.SealPage(page, soft, file.CodecZstd)
	parttest.Must(t, err)
	return binary.LittleEndian.AppendUint32(page, file.Checksum(page))
}

// TestForgedLines: a page of a few bytes does not make its reader allocate much more than a page may have.
func TestForgedLines(t *testing.T) {
	racetest.SkipSerial(t)
	for _, raw := range []int{file.MaxPageBytes, maxFieldBytes} {
		visits := raw/minFieldBytes + MaxPageLines
		for _, fragments := range []int{1, 2, 500, visits} {
			for _, length := range []int64{0, 1, 1 << 20} {
				page := forgedLines(t, raw, visits, fragments, length, 0)
				var err error
				n := alloctest.Bytes(func() { _, err = DecodePage(page) })
				if !errors.Is(err, model.ErrCorrupt) || n > 20<<20 {
					t.Errorf("%d bytes of which each of %d values is one of %d fragments of %d: %d bytes allocated, %v", raw, visits, fragments, length, n, err)
				}
			}
		}
	}
}
