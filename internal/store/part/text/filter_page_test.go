package text

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
	"github.com/shaledb/shale/internal/store/part/parttest"
)

func TestFilterPages(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 3))
		var items []*lines.Items
		var filters []byte
		var ends []uint32
		for range rapid.IntRange(1, 40).Draw(rt, "filters") {
			s := new(lines.Items)
			for class := range lines.ItemClasses {
				// Around the length from which on a class is divided: 512 bytes.
				least := 4096 / lines.ItemBits[class]
				n := rapid.SampledFrom([]int{0, 1, 30, least - 1, least, least + 1, least + 40, 3 * least}).Draw(rt, "items")
				for range n {
					s.Lists[class] = append(s.Lists[class], rnd.Uint64())
				}
			}
			before := len(filters)
			filters = s.Append(filters, rapid.SampledFrom([]int{100_000, 500_000, 10_000_000}).Draw(rt, "bytes of lines"))
			if len(filters) > before {
				items, ends = append(items, s), append(ends, uint32(len(filters)))
			}
		}
		begin, first := uint32(0), 0
		for len(ends) > 0 {
			n, count := together(filters, begin, ends, rapid.SampledFrom([]int{1, 1000, 10_000, SliceBytes}).Draw(rt, "slice"))
			if n == 0 {
				rt.Fatal("no filter makes a page")
			}
			stored, err := file.SealPage(nil, appendFilterPage(nil, filters, begin, ends[:n], count), file.CodecNone)
			parttest.Must(t, err)
			addr := file.Addr{Off: 77, Len: uint32(len(stored))}
			var parts [][]byte
			for i := range count {
				slice, err := file.SealPage(nil, appendSlice(nil, filters, begin, ends[:n], count, i), file.CodecNone)
				parttest.Must(t, err)
				stored = append(stored, slice...)
			}
			payload, err := lines.DecodePage(stored[:addr.Len])
			parttest.Must(t, err)
			var p filterPage
			parttest.Must(t, p.decode(payload, addr))
			for i := range count {
				a := p.slice(i)
				slice, err := lines.DecodePage(stored[a.Off-addr.Off:][:a.Len])
				parttest.Must(t, err)
				if len(slice) != p.length {
					rt.Fatalf("slice %d has %d bytes, should have %d", i, len(slice), p.length)
				}
				parts = append(parts, slice)
			}
			for i := range n {
				for class, list := range items[first+i].Lists {
					for _, item := range list {
						var slice []byte
						if count > 0 {
							slice = parts[p.sliceOf(item)]
						}
						if !p.has(i, byte(class), item, slice) {
							rt.Fatalf("filter %d of %d lacks an item of class %d", i, n, class)
						}
					}
				}
				filter, err := p.appendFilter(nil, uint32(i), parts)
				parttest.Must(t, err)
				if !bytes.Equal(filter, filters[begin:ends[i]]) {
					rt.Fatalf("filter %d of %d is another one", i, n)
				}
				begin = ends[i]
			}
			ends, first = ends[n:], first+n
		}
	})
}
