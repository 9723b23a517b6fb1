package rows

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
)

// batchOfLines makes a batch of lines, perSeries for each series, a microsecond apart.
func batchOfLines(series, perSeries int, line func(n, i int) model.Line) *model.Batch {
	b := &model.Batch{Tenant: "a", Signal: model.Logs}
	for n := range series {
		for i := range perSeries {
			l := line(n, i)
			b.Text.AppendBlob(int64(i)*1000, model.KindText, model.AppendLine(nil, &l), 0)
		}
		b.EndSeries(model.Key{Hi: uint64(n)})
	}
	return b
}

// TestLinesTakeWhatIsCharged: the buffers take for a batch what it is charged before it comes in, but for one
// block that is not full, however badly its lines fit into blocks.
func TestLinesTakeWhatIsCharged(t *testing.T) {
	racetest.SkipSerial(t)
	for _, sizes := range [][]int{
		{140_000}, {BlobBlockBytes / 2, 10}, {largeBlob, 1}, {largeBlob - 100}, {largeBlob - 100, 200_000, BlobBlockBytes - largeBlob/2, 50}, {BlobBlockBytes - 20, 0},
	} {
		b := batchOfLines(1, 115, func(_, i int) model.Line {
			return model.Line{Text: bytes.Repeat([]byte{byte(i)}, sizes[i%len(sizes)])}
		})
		charged := BatchPeakBytes(b)
		buffer := NewBuffer()
		buffer.Append(1, b)
		// Chunks of rows are as long as they are, whatever is in them.
		columns := buffer.Bytes - buffer.BlobBytes
		if got := PeakBytes(buffer.Bytes, buffer.BlobBytes) - 2*columns; got > charged+BlobBlockBytes {
			t.Errorf("lines of %d bytes: %d are charged, and the buffers take %d", sizes, charged, got)
		}
	}
}

// TestLinesAllocate: a line that is applied, or brought together, costs no allocation of its own.
func TestLinesAllocate(t *testing.T) {
	info := model.LabelsOf("level", "info")
	b := batchOfLines(10, 1000, func(n, i int) model.Line {
		return model.Line{Text: fmt.Appendf(nil, "level=info stream=%d msg=\"request %d completed\"", n, i), Metadata: info}
	})
	rows := float64(b.Rows())
	buffer := NewBuffer()
	if got := testing.AllocsPerRun(5, func() { buffer.Append(1, b) }); got > rows/100 {
		t.Errorf("%v allocations for %v lines", got, rows)
	}
	runs, _ := buffer.Seal()
	text := &runs[0].Tenant("a").Families[model.Text]
	var g Gatherer
	var dst model.TextRows
	buf := make([]byte, 0, text.LineBytes(0, len(text.Keys)))
	gather := func() {
		if err := g.Gather(&dst, text, 0, 1000, runs[0].Blobs, model.WantLines|model.WantMetadata, buf); err != nil {
			t.Fatal(err)
		}
	}
	gather()
	alloctest.AtMost(t, 0, 5, gather)
}
