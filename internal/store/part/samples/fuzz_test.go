package samples

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/part/parttest"
)

// FuzzPayloads gives bytes to every decoder of a page's payload.
func FuzzPayloads(f *testing.F) {
	rnd := rand.New(rand.NewPCG(4, 2))
	for _, kind := range []int{0, 1, 2} {
		var page samplePage
		page.reset()
		for rank, n := range []int{1, 1, 3, 9, 40, 1} {
			var rows model.Rows
			var h model.Histogram
			for k := range n {
				switch {
				case kind == 1 && k%3 == 0:
					worldtest.AnyHistogram(rnd, &h)
					rows.AppendBlob(int64(k)*15e9, model.KindHistogram, model.AppendHistogram(nil, &h), 0)
				default:
					rows.Append(int64(k)*15e9, rnd.Uint64(), int64(kind/2))
				}
			}
			parttest.Must(f, page.add(uint32(rank), &rows, 0, rows.Len()))
		}
		f.Add(page.payload(nil))
	}
	var exemplars exemplarPage
	exemplars.reset()
	for i := range int64(20) {
		exemplars.add(uint32(i/3), i, model.Exemplar{Value: uint64(i), Labels: model.LabelsOf("trace_id", strconv.FormatInt(i*7919, 16))})
	}
	f.Add(exemplars.payload(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, dir := range []rowDir{&sampleDir{}, &exemplarDir{}} {
			if dir.decode(b) != nil {
				continue
			}
			var rows model.Rows
			_, ranks, _ := dir.span()
			for i := range ranks {
				_ = dir.appendRows(i, model.Always(), &rows)
				rows.Reset()
			}
			_, _, _ = dir.extent()
		}
	})
}
