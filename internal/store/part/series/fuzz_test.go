package series

import (
	"strconv"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
)

// FuzzPayloads gives bytes to every decoder of a page's payload.
func FuzzPayloads(f *testing.F) {
	var keys keyPage
	var labels labelPage
	page := postingPage{tenant: 1}
	for i := range uint32(200) {
		l := model.LabelsOf("__name__", "m", "i", strconv.Itoa(int(i)))
		keys.add(i, model.Key{Hi: uint64(i) << 40, Lo: uint64(i)})
		labels.add(i, l)
		page.add([]byte("i"), []byte(strconv.Itoa(int(i))), 1, i, appendRun(nil, 0, 1))
	}
	masks := maskPage{masks: []int64{1, 3, 3, 7, -1}}
	for _, b := range [][]byte{keys.payload(nil), labels.payload(nil), page.payload(nil), masks.payload(nil, &column.IntCoder{})} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var keys keyDir
		if keys.decode(b) == nil {
			_, _ = keys.seek(model.Key{Hi: 1 << 60})
			for hi := range uint64(64) {
				_, _, _ = keys.find(model.Key{Hi: hi << 58, Lo: hi})
			}
			for i := range keys.count {
				_ = keys.load(i)
			}
		}
		var labels LabelDir
		if labels.decode(b) == nil {
			for i := labels.count - 1; i >= 0; i -= 1 + labels.count/10 {
				if labels.seek(i) != nil {
					break
				}
			}
		}
		var lists postingDir
		if lists.decode(b) == nil {
			for ok, err := lists.next(); ok && err == nil; ok, err = lists.next() {
				_ = lists.runs(1000, func(from, to uint32) {
					if from >= to || to > 1000 {
						t.Fatalf("run [%d, %d)", from, to)
					}
				})
			}
		}
		var masks maskDir
		_ = masks.decode(b)
	})
}
