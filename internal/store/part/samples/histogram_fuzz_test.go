package samples

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/parttest"
)

func FuzzHistograms(f *testing.F) {
	var all []byte
	var h model.Histogram
	for i := range 20 {
		worldtest.AnyHistogram(rand.New(rand.NewPCG(1, uint64(i/9))), &h)
		h.Count += uint64(i)
		if b := model.AppendHistogram(nil, &h); len(b) < 256 {
			all = append(append(all, byte(len(b))), b...)
		}
		if i%7 == 0 {
			all = append(all, 1, byte(i))
		}
	}
	f.Add(all, false)
	f.Add(all[:200], true)
	// Rollups, and with them all histograms whose numbers have fixed places.
	var rolled []byte
	for i := range 60 {
		x := float64(i * i)
		b := model.AppendRollup(nil, &model.Rollup{Step: int64(60 << (i / 20)), Count: int64(i), Sum: x, Min: -x, Max: x / 3, Last: 1, Own: 7, HasOwn: i%3 == 0, Given: i%20 == 1})
		rolled = append(append(rolled, byte(len(b))), b...)
	}
	f.Add(rolled, false)
	f.Add(rolled, true)
	f.Fuzz(func(t *testing.T, b []byte, dense bool) {
		var rows, got model.Rows
		for rest := b; len(rest) > 0; {
			n := min(int(rest[0]), len(rest)-1)
			blob := rest[1 : 1+n]
			at := int64(rows.Len())
			if h.Parse(blob) == nil && checkHistogram(&h) == "" {
				rows.AppendBlob(at, model.KindHistogram, blob, 0)
			} else {
				rows.Append(at, xxh3.Hash(blob), 0)
			}
			rest = rest[1+n:]
		}
		n := rows.Len()
		if n == 0 || n > MaxSeriesRows {
			return
		}
		values := column.ValueCoder{Ints: column.IntCoder{Dense: dense}}
		var c histogramCoder
		segment, err := c.append(nil, &rows, 0, n, &values)
		parttest.Must(t, err)
		var d histogramDecoder
		d.layouts, err = readLayouts(nil, c.layouts.append(nil))
		parttest.Must(t, err)
		var decoder column.ValueDecoder
		parttest.Must(t, d.decode(segment, n, &decoder))
		for k := range n {
			parttest.Must(t, d.appendRow(k, int64(k), 0, &got))
		}
		if !worldtest.SameRows(&got, &rows) {
			t.Fatalf("%v, should be %v", got, rows)
		}
		if err := d.decode(b, n, &decoder); err == nil {
			for k := range n {
				parttest.Must(t, d.appendRow(k, int64(k), 0, &got))
			}
		} else if !errors.Is(err, model.ErrCorrupt) {
			t.Fatal(err)
		}
	})
}
