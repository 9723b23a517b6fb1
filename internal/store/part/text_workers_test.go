package part

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/parttest"
	"github.com/shaledb/shale/internal/store/part/text"
)

// TestWorkers: a part has the same bytes whatever number of goroutines code its lines.
func TestWorkers(t *testing.T) {
	rows := randomText(rand.New(rand.NewPCG(1, 1)), 1700000000e9, 3000, true)
	z := tiny
	z.TextBytes, z.TextRows = 500, 40
	var want []byte
	for _, workers := range []int{0, 1, 2, 3, 9} {
		o := logOptions(true, Dense)
		o.Workers = workers
		var buf bytes.Buffer
		w := newWriter(&buf, o, z)
		if w.text.Workers != workers {
			t.Fatalf("%d goroutines code lines, want %d", w.text.Workers, workers)
		}
		for i := range 3 {
			l := model.LabelsOf("app", fmt.Sprint(i))
			parttest.Must(t, w.Series("a", model.Key{Hi: uint64(i + 1)}, l))
			parttest.Must(t, w.Text(context.Background(), []text.Series{text.OfRows(rowsOf(rows))}, model.Always()))
		}
		if _, _, err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = buf.Bytes()
		}
		if !bytes.Equal(buf.Bytes(), want) {
			t.Errorf("with %d goroutines the bytes differ", workers)
		}
	}
}
