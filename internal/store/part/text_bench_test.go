package part

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
	"github.com/shaledb/shale/internal/store/part/parttest"
	"github.com/shaledb/shale/internal/store/part/text"
)

func perGB(b *testing.B, from time.Duration, bytes int) {
	b.ReportMetric((alloctest.CPU(b)-from).Seconds()/float64(b.N)/float64(bytes)*1e9, "cpu-s/GB")
}

// writeLines writes rows as the only series of a part.
func writeLines(t testing.TB, rows *model.TextRows, level Compression) *Reader {
	t.Helper()
	var buf bytes.Buffer
	w := NewWriter(&buf, logOptions(false, level))
	parttest.Must(t, w.Series("t", model.Key{Lo: 1}, nil))
	parttest.Must(t, w.Text(context.Background(), []text.Series{text.OfRows(rows)}, model.Always()))
	return finishText(t, w, &buf)
}

// BenchmarkTextWrite writes lines of one series: in units that stay, with their filters, and in one that will
// be merged.
func BenchmarkTextWrite(b *testing.B) {
	rows := worldtest.JSONLines(4<<20, 0)
	small := model.TextRows{}
	text.ViewRows(&small, rows, 0, 500)
	for name, rows := range map[string]*model.TextRows{"large": rows, "small": &small} {
		b.Run(name, func(b *testing.B) {
			size := int(rows.Ends[len(rows.Ends)-1] - rows.Begin)
			b.SetBytes(int64(size))
			from := alloctest.CPU(b)
			for b.Loop() {
				w := NewWriter(discard{}, logOptions(false, Fast))
				parttest.Must(b, w.Series("t", model.Key{Lo: 1}, nil))
				parttest.Must(b, w.Text(context.Background(), []text.Series{text.OfRows(rows)}, model.Always()))
				_, _, err := w.Finish()
				parttest.Must(b, err)
			}
			perGB(b, from, size)
		})
	}
}

// BenchmarkTextRead decodes pages of lines.
func BenchmarkTextRead(b *testing.B) {
	rows := worldtest.JSONLines(text.UnitBytes, 0)
	for codec, name := range map[byte]string{lines.Codec: "lines", file.CodecS2: "s2", file.CodecZstd: "zstd"} {
		b.Run(name, func(b *testing.B) {
			stored, err := lines.Seal(nil, rows.Bytes, 0, rows.Ends, nil)
			if codec != lines.Codec {
				stored, err = file.SealPage(nil, rows.Bytes, codec)
			}
			parttest.Must(b, err)
			b.SetBytes(int64(len(rows.Bytes)))
			from := alloctest.CPU(b)
			for b.Loop() {
				_, err := lines.DecodePage(stored)
				parttest.Must(b, err)
			}
			perGB(b, from, len(rows.Bytes))
			b.ReportMetric(float64(len(stored))/float64(len(rows.Bytes)), "of-raw")
		})
	}
}

// BenchmarkTextCopy merges parts whose units need no merging.
func BenchmarkTextCopy(b *testing.B) {
	var files []*Reader
	size := 0
	for i := range 4 {
		rows := worldtest.JSONLines(2<<20, int64(i)*1e15)
		size += len(rows.Bytes)
		files = append(files, writeLines(b, rows, Fast))
	}
	b.SetBytes(int64(size))
	from := alloctest.CPU(b)
	for b.Loop() {
		var in []Stream
		for _, r := range files {
			in = append(in, r.Stream())
		}
		w := NewWriter(discard{}, logOptions(false, Dense))
		parttest.Must(b, Merge(context.Background(), in, func(tenant string, k model.Key, _ model.Labels, _ *model.SeriesRows, text []text.Series) error {
			if err := w.Series(tenant, k, nil); err != nil {
				return err
			}
			return w.Text(context.Background(), text, model.Always())
		}, MergeOptions{}))
		_, _, err := w.Finish()
		parttest.Must(b, err)
	}
	perGB(b, from, size)
}

// TestTextAllocations: writing lines allocates by the unit, not by the line.
func TestTextAllocations(t *testing.T) {
	rows := worldtest.JSONLines(8*text.UnitBytes, 0)
	w := NewWriter(discard{}, logOptions(false, Fast))
	next := uint64(0)
	write := func() {
		next++
		parttest.Must(t, w.Series("t", model.Key{Lo: next}, nil))
		parttest.Must(t, w.Text(context.Background(), []text.Series{text.OfRows(rows)}, model.Always()))
	}
	write()
	alloctest.AtMost(t, 200, 3, write)
}

// TestConcurrentPages reads and releases the same pages from several goroutines.
func TestConcurrentPages(t *testing.T) {
	r := writeLines(t, worldtest.JSONLines(2*text.UnitBytes, 0), Dense)
	req := &model.Request{
		Range: model.Always(), Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 30}}, Cost: &model.Cost{},
		TextFilter: &model.TextFilter{Clauses: []model.TextClause{{Any: []model.TextLiteral{{Value: "0123456789abcdef0123456789abcdef"}}}}},
	}
	chunks, err := r.TextAt(context.Background(), req, nil, 0, unnamed).Chunks(context.Background(), 0, nil)
	parttest.Must(t, err)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			var got model.TextRows
			for i := range 20 {
				c := chunks[(g+i)%len(chunks)]
				if skip, err := c.Page.Skip(context.Background()); err != nil || !skip {
					t.Errorf("skip: %t, %v", skip, err)
				}
				if err := c.Page.ReadText(context.Background(), c.Index, model.WantLines, &got); err != nil || got.Len() != c.Rows || len(got.Line(c.Rows-1)) == 0 {
					t.Errorf("%d rows of %d: %v", got.Len(), c.Rows, err)
				}
				if i%3 == g%3 {
					c.Page.Release()
				}
			}
		})
	}
	wg.Wait()
	for _, c := range chunks {
		c.Page.Release()
	}
	if left := req.Quota.Charged(); left != (model.Charge{}) {
		t.Fatalf("still charged: %+v", left)
	}
}

// BenchmarkTextMergeSmall merges parts of many series of a few lines each.
func BenchmarkTextMergeSmall(b *testing.B) {
	const series = 20_000
	var files []*Reader
	for i := range 4 {
		var buf bytes.Buffer
		w := NewWriter(&buf, logOptions(false, Fast))
		rows := worldtest.JSONLines(1<<20, int64(i)*1e15)
		for k := range uint64(series) {
			parttest.Must(b, w.Series("t", model.Key{Hi: k << 20, Lo: k}, nil))
			var few model.TextRows
			at := int(k) % (rows.Len() - 3)
			text.ViewRows(&few, rows, at, at+3)
			parttest.Must(b, w.Text(context.Background(), []text.Series{text.OfRows(&few)}, model.Always()))
		}
		m, size, err := w.Finish()
		parttest.Must(b, err)
		r, err := Open(context.Background(), bytes.NewReader(buf.Bytes()), size)
		parttest.Must(b, err)
		if m.Text != 3*series {
			b.Fatalf("%d lines", m.Text)
		}
		files = append(files, r)
	}
	b.ReportAllocs()
	from := alloctest.CPU(b)
	size := 0
	for b.Loop() {
		var in []Stream
		for _, r := range files {
			in = append(in, r.Stream())
		}
		w := NewWriter(discard{}, logOptions(false, Fast))
		parttest.Must(b, Merge(context.Background(), in, func(tenant string, k model.Key, _ model.Labels, _ *model.SeriesRows, text []text.Series) error {
			if err := w.Series(tenant, k, nil); err != nil {
				return err
			}
			return w.Text(context.Background(), text, model.Always())
		}, MergeOptions{}))
		m, _, err := w.Finish()
		parttest.Must(b, err)
		size = int(m.TextBytes)
	}
	perGB(b, from, size)
}
