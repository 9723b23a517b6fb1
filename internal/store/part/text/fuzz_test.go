package text

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
	"github.com/shaledb/shale/internal/store/part/parttest"
)

// FuzzPayloads gives bytes to every decoder of a page's payload.
func FuzzPayloads(f *testing.F) {
	for _, metadata := range []bool{false, true} {
		var rows model.TextRows
		for i := range 40 {
			rows.Bytes = fmt.Appendf(rows.Bytes, "line %d", i%7)
			rows.Times, rows.Ends = append(rows.Times, int64(i)), append(rows.Ends, uint32(len(rows.Bytes)))
			if metadata {
				rows.Metadata = append(rows.Metadata, model.LabelsOf("pod", strconv.Itoa(i%3), "trace_id", strconv.Itoa(i*7919)))
				rows.MetadataOf = append(rows.MetadataOf, uint32(i+1))
			}
		}
		f.Add(new(unitCoder).append(nil, []int64{30, 0, 10}, &rows))
	}
	rnd := rand.New(rand.NewPCG(5, 5))
	var filters []byte
	var ends []uint32
	for _, n := range []int{10, 2000, 300} {
		var items lines.Items
		for class := range lines.ItemClasses {
			for range n {
				items.Add(class, rnd.Uint64())
			}
		}
		filters = items.Append(filters, 10_000_000)
		ends = append(ends, uint32(len(filters)))
	}
	f.Add(appendFilterPage(nil, filters, 0, ends, 0))
	f.Add(appendFilterPage(nil, filters, 0, ends, 4))
	f.Fuzz(func(t *testing.T, b []byte) {
		var unit unit
		if unit.decode(b) == nil {
			unit.lines = make([]byte, unit.lineBytes())
			var rows model.TextRows
			for i := range unit.Counts {
				unit.view(i, &rows)
				for k := range rows.Times {
					if rows.MetadataAt(k).Check() != nil {
						t.Fatal("metadata is not canonical")
					}
				}
			}
		}
		var filters filterPage
		if filters.decode(b, file.Addr{}) == nil {
			slices := make([][]byte, filters.slices)
			for i := range slices {
				slices[i] = make([]byte, filters.length)
				for k := range slices[i] {
					slices[i][k] = byte(lines.Spread(uint64(i*filters.length+k)) | lines.Spread(uint64(k)))
				}
			}
			for i := range filters.filters {
				filter, err := filters.appendFilter(nil, uint32(i), slices)
				parttest.Must(t, err)
				var x lines.Filter
				parttest.Must(t, x.Open(filter))
				for item := range uint64(2 * lines.FilterParts) {
					class, item := byte(item)%lines.ItemClasses, lines.Spread(item)|item<<33
					var slice []byte
					if len(slices) > 0 {
						slice = slices[filters.sliceOf(item)]
					}
					if x.Has(class, item) != filters.has(i, class, item, slice) {
						t.Fatalf("filter %d, class %d: it has an item by itself or among others, but not both", i, class)
					}
				}
			}
		}
	})
}
