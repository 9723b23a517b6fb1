package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
)

func drawBatch(t *rapid.T) *model.Batch {
	b := &model.Batch{
		Tenant: rapid.SampledFrom([]string{"", "anonymous", "team-a"}).Draw(t, "tenant"),
		Signal: rapid.SampledFrom([]model.Signal{model.Metrics, model.Logs}).Draw(t, "signal"),
	}
	time := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, 0, 1_700_000_000e9, math.MaxInt64}))
	value := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, model.StaleNaN, math.Float64bits(math.Copysign(0, -1))}))
	single, equal, starts := rapid.Bool().Draw(t, "single"), rapid.Bool().Draw(t, "equal"), rapid.Bool().Draw(t, "starts")
	histograms := rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "histograms") // none, some, all
	exemplars := rapid.SampledFrom([]int{0, 0, 1, 10}).Draw(t, "exemplars")  // one series of so many has some
	lines := rapid.SampledFrom([]int{0, 0, 1, 10}).Draw(t, "lines")
	blob := rapid.SliceOfN(rapid.Byte(), 0, 40)
	at := time.Draw(t, "at")
	for range rapid.IntRange(0, 20).Draw(t, "series") {
		rows := 1
		if !single {
			rows = rapid.IntRange(0, 4).Draw(t, "rows")
		}
		for range rows {
			if !equal {
				at = time.Draw(t, "time")
			}
			start := int64(0)
			if starts {
				start = time.Draw(t, "start")
			}
			if histograms == 2 || histograms == 1 && rapid.Bool().Draw(t, "histogram") {
				b.Samples.AppendBlob(at, model.KindHistogram, blob.Draw(t, "blob"), start)
			} else {
				b.Samples.Append(at, value.Draw(t, "value"), start)
			}
		}
		if exemplars > 0 && rapid.IntRange(1, exemplars).Draw(t, "exemplar") == 1 {
			for range rapid.IntRange(1, 3).Draw(t, "number") {
				b.Exemplars.AppendBlob(time.Draw(t, "seen"), model.KindExemplar, blob.Draw(t, "exemplar"), 0)
			}
		}
		if lines > 0 && rapid.IntRange(1, lines).Draw(t, "line") == 1 {
			for range rapid.IntRange(1, 3).Draw(t, "number") {
				b.Text.AppendBlob(time.Draw(t, "written"), model.KindText, drawLine(t), 0)
			}
		}
		b.EndSeries(model.Key{Hi: rapid.Uint64().Draw(t, "hi"), Lo: rapid.Uint64().Draw(t, "lo")})
		if rapid.Bool().Draw(t, "labelled") {
			b.Labels.Append(uint32(len(b.Keys)-1), drawLabels(t))
		}
	}
	return b
}

// drawLine draws lines that have much in common, little, or nothing.
func drawLine(t *rapid.T) []byte {
	if rapid.Bool().Draw(t, "random") {
		return rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "noise")
	}
	return model.AppendLine(nil, &model.Line{
		Text:     []byte(strings.Repeat(rapid.SampledFrom([]string{"GET /index.html ", "error: ", ""}).Draw(t, "text"), rapid.IntRange(0, 20).Draw(t, "times"))),
		Metadata: model.LabelsOf("trace_id", rapid.StringN(0, 10, -1).Draw(t, "trace")),
	})
}

// drawLabels draws label sets that share labels. Some are other bytes, since the journal does not parse
// labels.
func drawLabels(t *rapid.T) model.Labels {
	if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
		return model.Labels(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes"))
	}
	value := rapid.SampledFrom([]string{"a", "b", strings.Repeat("long", 50)})
	pairs := []string{"__name__", rapid.StringN(1, 10, -1).Draw(t, "name")}
	for _, name := range []string{"instance", "job", "le", "mode"} {
		if rapid.Bool().Draw(t, name) {
			pairs = append(pairs, name, value.Draw(t, "value"))
		}
	}
	return model.LabelsOf(pairs...)
}

func TestRoundTrip(t *testing.T) {
	// The decoder is given a used batch each time, as replay does.
	var got model.Batch
	rapid.Check(t, func(t *rapid.T) {
		want := drawBatch(t)
		prefix := []byte("prefix")
		record := EncodeBatch(prefix, want)
		if string(record[:6]) != "prefix" {
			t.Fatal("the bytes before the record have changed")
		}
		if err := DecodeBatch(record[6:], &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, &got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func goldenBatch() *model.Batch {
	b := &model.Batch{Tenant: "anonymous", Signal: model.Metrics}
	b.Samples.Append(1_700_000_000_000_000_000, math.Float64bits(1.5), 0)
	b.Samples.Append(1_700_000_015_000_000_000, model.StaleNaN, 1_600_000_000_000_000_000)
	b.EndSeries(model.Key{Hi: 0x0102030405060708, Lo: 0x090a0b0c0d0e0f10})
	b.AddSample(model.Key{Hi: 0xfffefdfcfbfaf9f8, Lo: 1}, -1, 0)
	b.Labels.Append(1, model.LabelsOf("__name__", "up", "job", "node"))
	return b
}

// sharedBatch has label sets that differ in front, in the middle, at the end, by a label more and by a label
// less.
func sharedBatch() *model.Batch {
	b := &model.Batch{Tenant: "t", Signal: model.Metrics}
	for i, l := range []model.Labels{
		model.LabelsOf("__name__", "a_bucket", "job", "node", "le", "0.1", "zone", "eu"),
		model.LabelsOf("__name__", "a_bucket", "job", "node", "le", "+Inf", "zone", "eu"),
		model.LabelsOf("__name__", "a_sum", "job", "node", "zone", "eu"),
		model.LabelsOf("__name__", "b_bucket", "job", "node", "le", "1", "zone", "us"),
		model.LabelsOf("__name__", "b_bucket", "job", "node", "le", "1"),
	} {
		b.AddSample(model.Key{Lo: uint64(i)}, 1000, 0)
		b.Labels.Append(uint32(i), l)
	}
	return b
}

// TestSharedLabelsSpread: however alike label sets are, reading them takes no more memory than the format
// says.
func TestSharedLabelsSpread(t *testing.T) {
	want := scrape(5000)
	l := model.LabelsOf("__name__", "up", "long", strings.Repeat("x", 5000))
	for i := range want.Keys {
		want.Labels.Append(uint32(i), l)
	}
	record := EncodeBatch(nil, want)
	if len(want.Labels.Bytes) > maxExpansion*len(record) {
		t.Errorf("%d bytes of labels in a record of %d", len(want.Labels.Bytes), len(record))
	}
	var got model.Batch
	if err := DecodeBatch(record, &got); err != nil {
		t.Fatal(err)
	}
	// cmp takes minutes for so many bytes.
	if !bytes.Equal(got.Labels.Bytes, want.Labels.Bytes) || !slices.Equal(got.Labels.Ends, want.Labels.Ends) {
		t.Error("the labels have changed")
	}
}

// kindsBatch has floats and histograms, one after the other in a series.
func kindsBatch() *model.Batch {
	b := &model.Batch{Tenant: "t", Signal: model.Metrics}
	b.Samples.Append(1000, math.Float64bits(2.5), 0)
	b.Samples.AppendBlob(2000, model.KindHistogram, model.AppendHistogram(nil, &model.Histogram{
		Count: 3, Sum: math.Float64bits(4.5), Schema: 1, PositiveSpans: []model.HistogramSpan{{Offset: 1, Length: 2}}, Positive: []uint64{1, 1},
	}), 500)
	b.EndSeries(model.Key{Lo: 1})
	b.Samples.AppendBlob(2000, model.KindHistogram, model.AppendHistogram(nil, &model.Histogram{Gauge: true, Float: true, Sum: model.StaleNaN}), 0)
	b.EndSeries(model.Key{Lo: 2})
	return b
}

// exemplarsBatch has exemplars of one series of three, and histograms alone.
func exemplarsBatch() *model.Batch {
	b := &model.Batch{Tenant: "t", Signal: model.Metrics}
	for i := range 3 {
		b.Samples.AppendBlob(1000, model.KindHistogram, model.AppendHistogram(nil, &model.Histogram{Count: uint64(i)}), 0)
		if i == 1 {
			for at := range 2 {
				b.Exemplars.AppendBlob(900+int64(at), model.KindExemplar, model.AppendExemplar(nil, &model.Exemplar{
					Value: math.Float64bits(0.5), Labels: model.LabelsOf("trace_id", "a1"),
				}), 0)
			}
		}
		b.EndSeries(model.Key{Lo: uint64(i)})
	}
	return b
}

// linesBatch has lines of two series of three, enough of them to be worth a block.
func linesBatch() *model.Batch {
	b := &model.Batch{Tenant: "t", Signal: model.Logs}
	for i := range 3 {
		for at := range 2*(i%2) + i/2 {
			b.Text.AppendBlob(1_700_000_000_000_000_000+int64(at), model.KindText, model.AppendLine(nil, &model.Line{
				Text:     []byte("level=info msg=\"request completed\" status=200 duration=12ms\xff\x00"),
				Metadata: model.LabelsOf("trace_id", "a1"),
			}), 0)
		}
		b.EndSeries(model.Key{Lo: uint64(i)})
	}
	return b
}

// fewLinesBatch has a line that is stored as it is.
func fewLinesBatch() *model.Batch {
	b := &model.Batch{Tenant: "t", Signal: model.Logs}
	b.Text.AppendBlob(1000, model.KindText, model.AppendLine(nil, &model.Line{Text: []byte("hello")}), 0)
	b.Text.AppendBlob(1000, model.KindText, model.AppendLine(nil, &model.Line{}), 0)
	b.EndSeries(model.Key{Lo: 1})
	return b
}

// TestLinesApart: lines with gaps between them, left by dropped lines, are stored like any others.
func TestLinesApart(t *testing.T) {
	b := &model.Batch{Tenant: "t", Signal: model.Logs}
	want := &model.Batch{Tenant: "t", Signal: model.Logs}
	for i := range 100 {
		blob := model.AppendLine(nil, &model.Line{Text: []byte(strings.Repeat("the same ", 10) + fmt.Sprint(i))})
		b.Text.AppendBlob(int64(i), model.KindText, blob, 0)
		b.EndSeries(model.Key{Lo: uint64(i)})
		if i%3 == 1 {
			want.Text.AppendBlob(int64(i), model.KindText, blob, 0)
			want.EndSeries(model.Key{Lo: uint64(i)})
		}
	}
	b.KeepRows(func(_ model.Family, _, row int) bool { return row%3 == 1 })
	record := EncodeBatch(nil, b)
	if len(record) > len(want.Text.Bytes) {
		t.Errorf("%d bytes for %d of lines", len(record), len(want.Text.Bytes))
	}
	var got model.Batch
	if err := DecodeBatch(record, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, &got, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// TestGolden keeps version 1 as it is: records, once written, stay readable forever.
func TestGolden(t *testing.T) {
	single := &model.Batch{Tenant: "t", Signal: model.Logs}
	single.AddSample(model.Key{Lo: 1}, 5, 7)
	single.AddSample(model.Key{Lo: 2}, 5, 7)
	for name, b := range map[string]*model.Batch{
		"mixed": goldenBatch(), "equal": single, "empty": {Signal: model.Metrics},
		"kinds": kindsBatch(), "exemplars": exemplarsBatch(), "shared": sharedBatch(),
		"few_lines": fewLinesBatch(),
		// A block that another version of the library, or another processor, may make otherwise.
		"lines": linesBatch(),
		// A section that is written no more.
		"whole_labels": goldenBatch(),
	} {
		t.Run(name, func(t *testing.T) {
			want := goldenRecord(t, name)
			if got := EncodeBatch(nil, b); string(got) != string(want) && name != "whole_labels" && name != "lines" {
				t.Errorf("encoded\n%swanted\n%s", hex.Dump(got), hex.Dump(want))
			}
			var got model.Batch
			if err := DecodeBatch(want, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(b, &got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func goldenRecord(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "record_"+name+".hex"))
	if err != nil {
		t.Fatal(err)
	}
	record, err := hex.DecodeString(strings.Join(strings.Fields(string(raw)), ""))
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func TestDecodeRefuses(t *testing.T) {
	good := EncodeBatch(nil, goldenBatch())
	var b model.Batch
	for n := range good {
		if err := DecodeBatch(good[:n], &b); err == nil && n > 12 {
			// A record may end at a section; nothing else may be missing.
			if again := EncodeBatch(nil, &b); string(again) != string(good[:n]) {
				t.Errorf("%d of %d bytes are taken for a record", n, len(good))
			}
		} else if err != nil && !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	for name, rec := range map[string][]byte{
		"version":          {2, 1, 0},
		"signal":           {1, 9, 0},
		"section":          {1, 1, 0, 99, 0, 0, 0, 0},
		"order":            {1, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0},
		"tenant":           {1, 1, 200, 1, 'x'},
		"rows from air":    append(append([]byte{1, 1, 0, 1, 16, 0, 0, 0}, make([]byte, 16)...), 0x11, 9, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0),
		"labels of whom":   {1, 1, 0, 2, 3, 0, 0, 0, 1, 0, 0},
		"shared of whom":   {1, 1, 0, 3, 3, 0, 0, 0, 1, 0, 0},
		"shared first":     labelsRecord(1, 0, 2, 1, 1, 'a', 0),
		"shared too far":   labelsRecord(2, 0, 2, 0, 2, 'a', 'b', 0, 0, 3, 3, 0, 0),
		"left out too far": labelsRecord(2, 0, 2, 0, 2, 'a', 'b', 0, 0, 1, 1, 0, 2),
		"more than said":   labelsRecord(1, 0, 1, 0, 2, 'a', 'b', 0),
		"less than said":   labelsRecord(1, 0, 3, 0, 2, 'a', 'b', 0),
		"labels from air":  labelsRecord(1, 0, 0xff, 0xff, 0xff, 0x7f, 0, 1, 'a', 0),
		"trailing":         {1, 1, 0, 2, 2, 0, 0, 0, 0, 0},
		"half a key":       {1, 1, 0, 1, 2, 0, 0, 0, 0, 0},
		"equal and many":   append(append([]byte{1, 1, 0, 1, 16, 0, 0, 0}, make([]byte, 16)...), 0x11, 20, 0, 0, 0, 1, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0),
		"length too long":  {1, 1, 0, 1, 0xff, 0xff, 0xff, 0xff},
		// Rows of one series, one each, at time 0, without start; then values.
		"unknown kind":             rowsRecord(0x11, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 9, 0),
		"exemplar among samples":   rowsRecord(0x11, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 2, 0),
		"float among exemplars":    rowsRecord(0x12, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0),
		"kinds of floats":          rowsRecord(0x11, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		"histogram beyond the end": rowsRecord(0x11, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 1, 5, 1),
		"kinds of what kind":       rowsRecord(0x11, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 7, 1, 0),
		"few of more series":       rowsRecord(0x12, 2, 1, 1, 1, 2, 0, 0, 4, 1, 2, 0),
		"few with no rows":         rowsRecord(0x12, 2, 1, 0, 0, 2, 0, 0, 4, 1, 2, 0),
		"lines of kinds":           rowsRecord(0x13, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 3, 0),
		"text among samples":       rowsRecord(0x11, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0),
		"lines cut short":          rowsRecord(0x13, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 2, 0, 'a'),
		"lines too long":           rowsRecord(0x13, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 1, 0, 'a', 'b'),
		"lines from air":           rowsRecord(0x13, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0x7f, 1, 0xff, 0xff, 0xff, 0x7f, 0),
		"lines of what codec":      rowsRecord(0x13, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 2),
		"lines of another length":  rowsRecord(0x13, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 2, 1, 1, 0, 'a'),
		"few with rows from air":   rowsRecord(0x12, 2, 1, 0, 0xff, 0xff, 0xff, 0x7f, 2, 0, 0, 4, 1, 2, 0),
	} {
		if err := DecodeBatch(rec, &b); !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// labelsRecord is a record of one key and a section of labels.
func labelsRecord(body ...byte) []byte { return rowsRecord(3, body...) }

// rowsRecord is a record of one key and a section of rows.
func rowsRecord(section byte, body ...byte) []byte {
	keys := append([]byte{1, 1, 0, 1, 16, 0, 0, 0}, make([]byte, 16)...)
	return append(append(keys, section, byte(len(body)), 0, 0, 0), body...)
}

func FuzzDecodeBatch(f *testing.F) {
	f.Add(EncodeBatch(nil, goldenBatch()))
	f.Add(EncodeBatch(nil, &model.Batch{Signal: model.Logs, Tenant: "x"}))
	f.Add(EncodeBatch(nil, scrape(30)))
	f.Add(EncodeBatch(nil, kindsBatch()))
	f.Add(EncodeBatch(nil, exemplarsBatch()))
	f.Add(EncodeBatch(nil, sharedBatch()))
	f.Add(goldenRecord(f, "whole_labels"))
	f.Add(EncodeBatch(nil, linesBatch()))
	f.Add(EncodeBatch(nil, fewLinesBatch()))
	f.Fuzz(func(t *testing.T, src []byte) {
		var b, again model.Batch
		if err := DecodeBatch(src, &b); err != nil {
			if !errors.Is(err, model.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if n := b.Rows(); n > len(src) || len(b.Keys) > len(src)/model.KeyBytes ||
			len(b.Labels.Bytes) > maxExpansion*len(src) || len(b.Samples.Bytes)+len(b.Exemplars.Bytes) > len(src) || len(b.Text.Bytes) > maxLineBytes {
			t.Fatalf("%d bytes gave %d rows", len(src), n)
		}
		record := EncodeBatch(nil, &b)
		if err := DecodeBatch(record, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&b, &again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// scrape is what a scrape of n series sends: one time, many values.
func scrape(n int) *model.Batch {
	b := &model.Batch{Tenant: "anonymous", Signal: model.Metrics}
	for i := range n {
		b.AddSample(model.Key{Hi: uint64(i) << 40, Lo: uint64(i) * 0x9e3779b97f4a7c15}, 1_700_000_000_000_000_000, math.Float64bits(float64(i)*1.1))
	}
	return b
}

// mixed is what a sender with many targets sends: times that change every few series.
func mixed(n int) *model.Batch {
	b := scrape(n)
	for i := range b.Samples.Times {
		b.Samples.Times[i] += int64(i/8) * 13_000_000
	}
	return b
}

// fresh is a scrape of n new series with about 600 bytes of labels each.
func fresh(n int) *model.Batch {
	b := scrape(n)
	for i := range n {
		pairs := []string{"__name__", fmt.Sprint("load_metric_", i/100), "job", "load", "instance", "host-17:9090", "series_id", fmt.Sprint(i % 100)}
		for j := range 10 {
			pairs = append(pairs, fmt.Sprintf("label_key_kkkkk_%d", j), fmt.Sprintf("label_val_vvvvvvvvvvvvvvvvvv_%d", j))
		}
		b.Labels.Append(uint32(i), model.LabelsOf(pairs...))
	}
	return b
}

// histograms is what a scrape of native histograms with exemplars sends.
func histograms(n int) *model.Batch {
	b := &model.Batch{Tenant: "anonymous", Signal: model.Metrics}
	blob := model.AppendHistogram(nil, &model.Histogram{Positive: make([]uint64, 20)})
	for i := range n {
		b.Samples.AppendBlob(1_700_000_000_000_000_000, model.KindHistogram, blob, 0)
		if i%10 == 0 {
			b.Exemplars.AppendBlob(1_700_000_000_000_000_000, model.KindExemplar, blob, 0)
		}
		b.EndSeries(model.Key{Hi: uint64(i) << 40, Lo: uint64(i)})
	}
	return b
}

// logs is what an agent sends: lines of a few streams.
func logs(n int) *model.Batch {
	b := &model.Batch{Tenant: "anonymous", Signal: model.Logs}
	for i := range n {
		b.Text.AppendBlob(1_700_000_000_000_000_000+int64(i)*1_000_000, model.KindText, model.AppendLine(nil, &model.Line{
			Text: fmt.Appendf(nil, `{"level":"info","ts":%d,"caller":"server.go:%d","msg":"request completed","path":"/api/v1/items/%x","status":200}`, i, i%97, i*7919),
		}), 0)
		if i%50 == 49 || i == n-1 {
			b.EndSeries(model.Key{Hi: uint64(i) << 40, Lo: uint64(i)})
		}
	}
	return b
}

func TestEncodeAllocates(t *testing.T) {
	for _, b := range map[string]*model.Batch{"floats": mixed(2000), "histograms": histograms(500), "labels": fresh(500), "lines": logs(500)} {
		buf := []byte(nil)
		alloctest.AtMost(t, 0, 20, func() { buf = EncodeBatch(buf[:0], b) })
		var got model.Batch
		alloctest.AtMost(t, 0, 20, func() {
			if err := DecodeBatch(buf, &got); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func BenchmarkEncodeBatch(b *testing.B) {
	for name, batch := range map[string]*model.Batch{"scrape": scrape(2000), "mixed": mixed(2000), "new": fresh(2000), "lines": logs(2000)} {
		b.Run(name, func(b *testing.B) {
			buf := []byte(nil)
			for b.Loop() {
				buf = EncodeBatch(buf[:0], batch)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2000, "ns/row")
			b.ReportMetric(float64(len(buf))/2000, "B/row")
		})
	}
}

func BenchmarkDecodeBatch(b *testing.B) {
	for name, batch := range map[string]*model.Batch{"mixed": mixed(2000), "new": fresh(2000), "lines": logs(2000)} {
		b.Run(name, func(b *testing.B) {
			buf := EncodeBatch(nil, batch)
			var batch model.Batch
			for b.Loop() {
				if err := DecodeBatch(buf, &batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2000, "ns/row")
		})
	}
}

// TestEndsOfLabels: a record, however large, cannot have more bytes of labels than their ends can count.
func TestEndsOfLabels(t *testing.T) {
	b := beginSection([]byte{version, byte(model.Metrics), 0}, keysSection)
	b = endSection(append(b, make([]byte, model.KeyBytes)...), len(b))
	b = beginSection(b, sharedSection)
	begin := len(b)
	b = binary.AppendUvarint(append(b, 1, 0), 1<<32) // a set, of series 0
	b = endSection(append(b, make([]byte, 17<<20)...), begin)
	var got model.Batch
	if err := DecodeBatch(b, &got); !errors.Is(err, model.ErrCorrupt) || !strings.Contains(err.Error(), "4 GiB") {
		t.Error(err)
	}
}

// TestControlRecord: control records come back, and have a version that older programs refuse. Rows and a
// control section do not go together.
func TestControlRecord(t *testing.T) {
	for _, kind := range []model.ControlKind{model.ControlDelete, model.ControlCancel} {
		in := &model.Batch{Tenant: "t", Signal: model.Logs, Control: model.Control{Kind: kind, Body: []byte(`{"a":1}`)}}
		data := EncodeBatch(nil, in)
		if data[0] != 2 {
			t.Errorf("version %d", data[0])
		}
		out := model.Batch{Keys: []model.Key{{Hi: 1}}}
		if err := DecodeBatch(data, &out); err != nil || out.Tenant != "t" || out.Signal != model.Logs || out.Control.Kind != kind || string(out.Control.Body) != `{"a":1}` || len(out.Keys) > 0 {
			t.Fatalf("%+v, %v", out, err)
		}
		if err := DecodeBatch(EncodeBatch(nil, &model.Batch{Tenant: "t", Signal: model.Logs}), &out); err != nil || out.Control.Kind != 0 {
			t.Fatalf("a control record is left over: %v", err)
		}
		for what, change := range map[string]func([]byte) []byte{
			"version 1":    func(b []byte) []byte { b[0] = 1; return b },
			"version 3":    func(b []byte) []byte { b[0] = 3; return b },
			"a kind":       func(b []byte) []byte { b[len(b)-8] = 9; return b },
			"no section":   func(b []byte) []byte { return b[:4] },
			"further rows": func(b []byte) []byte { return append(b, 0x13, 0, 0, 0, 0) },
		} {
			if err := DecodeBatch(change(bytes.Clone(data)), &out); !errors.Is(err, model.ErrCorrupt) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}
