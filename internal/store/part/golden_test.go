package part

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/parttest"
)

// TestGolden writes the parts that the files in testdata/golden describe, a series a line:
//
//	tenant label=value ... : time=value time=value^start ... ! time=value{label=value,...} ...
//
// and compares every byte. A value is a number, 16 hexadecimal digits after 0x, or a histogram as
// parseHistogram reads it; exemplars follow the !. With the argument "logs" a series is
//
//	tenant label=value ... | time "line" name=value ... ; time "line" ...
//
// The arguments "windows" and "sources" give the part masks and several sources.
// Run with -rewrite to update the output. A change of bytes is a change of the format.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "dump" {
				t.Fatalf("unknown command %q", d.Cmd)
			}
			o := testOptions(d.HasArg("labels"), Fast)
			if d.HasArg("dense") {
				o.Level = Dense
			}
			if d.HasArg("windows") {
				o.Windows = file.Windows{Start: 1700000000e9, Length: 60e9, Count: 3}
			}
			if d.HasArg("sources") {
				o.Sources = []file.Source{{Node: "n1", Epoch: 1600000000e9, SeqLo: 3, SeqHi: 9}, {Node: "n1", Epoch: 1650000000e9, SeqLo: 1, SeqHi: 4}, {Node: "n2", Epoch: 1500000000e9, SeqLo: 200, SeqHi: 300}}
			}
			signal := model.Metrics
			if d.HasArg("logs") {
				signal, o.Signal = model.Logs, model.Logs
			}
			var all []oneSeries
			for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
				if line != "" {
					all = append(all, parseSeries(t, line, signal))
				}
			}
			r, b := writePart(t, sortSeries(all), o)
			parttest.Must(t, Check(context.Background(), r))
			var out strings.Builder
			parttest.Must(t, Dump(context.Background(), &out, r))
			checkDumpIsWhole(t, out.String(), len(b))
			return out.String()
		})
	})
}

// checkDumpIsWhole fails unless the lines at file offsets follow each other to the end.
func checkDumpIsWhole(t *testing.T, dump string, size int) {
	t.Helper()
	at := 0
	for line := range strings.Lines(dump) {
		if len(line) < 8 || line[6] != ':' {
			continue
		}
		off, err := strconv.Atoi(line[:6])
		if err != nil {
			continue
		}
		if off != at {
			t.Fatalf("line %q, should be at %d", line, at)
		}
		var payload int
		if _, err := fmt.Sscanf(strings.TrimSpace(line[8:]), "# payload, %d bytes", &payload); err == nil {
			at += payload
			continue
		}
		at += len(strings.Fields(line[8:44]))
	}
	if at != size {
		t.Fatalf("the dump ends at %d of %d", at, size)
	}
}

func parseSeries(t *testing.T, line string, signal model.Signal) oneSeries {
	t.Helper()
	line, text, _ := strings.Cut(line, " |")
	head, tail, _ := strings.Cut(line, ":")
	tail, exemplars, _ := strings.Cut(tail, "!")
	var pairs []string
	fields := strings.Fields(head)
	for _, f := range fields[1:] {
		name, value, _ := strings.Cut(f, "=")
		pairs = append(pairs, name, value)
	}
	l := model.LabelsOf(pairs...)
	s := oneSeries{tenant: fields[0], key: l.Key(testSeed, signal), labels: l, text: parseText(t, text)}
	for _, f := range strings.Fields(tail) {
		at, value, _ := strings.Cut(f, "=")
		value, start, _ := strings.Cut(value, "^")
		var startTime int64
		if start != "" {
			startTime = parseInt(t, start)
		}
		if strings.HasPrefix(value, "h(") {
			s.rows.AppendBlob(parseInt(t, at), model.KindHistogram, parseHistogram(t, value), startTime)
			continue
		}
		s.rows.Append(parseInt(t, at), parseValue(t, value), startTime)
	}
	for _, f := range strings.Fields(exemplars) {
		at, value, _ := strings.Cut(f, "=")
		value, set, _ := strings.Cut(value, "{")
		var pairs []string
		for _, l := range strings.FieldsFunc(set, func(r rune) bool { return r == ',' || r == '}' }) {
			name, value, _ := strings.Cut(l, "=")
			pairs = append(pairs, name, value)
		}
		e := model.Exemplar{Value: parseValue(t, value), Labels: model.LabelsOf(pairs...)}
		s.exemplars.AppendBlob(parseInt(t, at), model.KindExemplar, model.AppendExemplar(nil, &e), 0)
	}
	return s
}

// parseText reads rows of text.
func parseText(t *testing.T, s string) (rows []textRow) {
	for _, row := range strings.Split(s, " ; ") {
		at, rest, ok := strings.Cut(strings.TrimSpace(row), " ")
		if !ok {
			continue
		}
		quoted, err := strconv.QuotedPrefix(rest)
		parttest.Must(t, err)
		line, err := strconv.Unquote(quoted)
		parttest.Must(t, err)
		var pairs []string
		for _, l := range strings.Fields(rest[len(quoted):]) {
			name, value, _ := strings.Cut(l, "=")
			pairs = append(pairs, name, value)
		}
		rows = append(rows, textRow{parseInt(t, at), line, string(model.LabelsOf(pairs...))})
	}
	return rows
}

// parseHistogram reads, with every field but the first optional,
//
//	h(schema;gauge;float;zt=0.001;count=9;zero=1;sum=3.5;p=0:2,3:1/5,-1,2;n=...;custom=1,2)
//
// where p and n are spans and, after the slash, buckets as in the canonical form.
func parseHistogram(t *testing.T, s string) []byte {
	fields := strings.Split(strings.TrimSuffix(strings.TrimPrefix(s, "h("), ")"), ";")
	h := model.Histogram{Schema: int32(parseInt(t, fields[0]))}
	number := func(s string) uint64 {
		if h.Float {
			return parseValue(t, s)
		}
		return uint64(parseInt(t, s))
	}
	for _, f := range fields[1:] {
		name, value, _ := strings.Cut(f, "=")
		switch name {
		case "gauge":
			h.Gauge = true
		case "float":
			h.Float = true
		case "zt":
			h.ZeroThreshold = parseValue(t, value)
		case "count":
			h.Count = number(value)
		case "zero":
			h.ZeroCount = number(value)
		case "sum":
			h.Sum = parseValue(t, value)
		case "custom":
			for _, v := range strings.Split(value, ",") {
				h.Custom = append(h.Custom, parseValue(t, v))
			}
		case "p", "n":
			spans, buckets, _ := strings.Cut(value, "/")
			var list []model.HistogramSpan
			var numbers []uint64
			for _, v := range strings.Split(spans, ",") {
				offset, length, _ := strings.Cut(v, ":")
				list = append(list, model.HistogramSpan{Offset: int32(parseInt(t, offset)), Length: uint32(parseInt(t, length))})
			}
			for _, v := range strings.Split(buckets, ",") {
				numbers = append(numbers, number(v))
			}
			if name == "p" {
				h.PositiveSpans, h.Positive = list, numbers
			} else {
				h.NegativeSpans, h.Negative = list, numbers
			}
		default:
			t.Fatalf("histogram: %q", f)
		}
	}
	return model.AppendHistogram(nil, &h)
}

func parseInt(t *testing.T, s string) int64 {
	v, err := strconv.ParseFloat(s, 64)
	parttest.Must(t, err)
	return int64(v)
}

func parseValue(t *testing.T, s string) uint64 {
	if digits, ok := strings.CutPrefix(s, "0x"); ok {
		v, err := strconv.ParseUint(digits, 16, 64)
		parttest.Must(t, err)
		return v
	}
	v, err := strconv.ParseFloat(s, 64)
	parttest.Must(t, err)
	return math.Float64bits(v)
}

// TestDumpOfForgery dumps and checks parts with spoilt pages whose checksums are right.
func TestDumpOfForgery(t *testing.T) {
	racetest.SkipSerial(t)
	whole := smallPart(t, Fast)
	r, err := Open(context.Background(), bytes.NewReader(whole), int64(len(whole)))
	parttest.Must(t, err)
	d := dumper{ctx: context.Background(), r: r.Reader}
	pages, err := d.pages()
	parttest.Must(t, err)
	rnd := rand.New(rand.NewPCG(8, 8))
	for range 3000 {
		b := bytes.Clone(whole)
		a := pages[rnd.IntN(len(pages))].addr
		stored := b[a.Off : a.Off+int64(a.Len)]
		for range 1 + rnd.IntN(3) {
			stored[rnd.IntN(len(stored)-file.ChecksumBytes)] = byte(rnd.Uint32())
		}
		body := stored[:len(stored)-file.ChecksumBytes]
		binary.LittleEndian.PutUint32(stored[len(body):], file.Checksum(body))
		r, err := Open(context.Background(), bytes.NewReader(b), int64(len(b)))
		parttest.Must(t, err)
		if err := Dump(context.Background(), discard{}, r); err != nil && !errors.Is(err, model.ErrCorrupt) {
			t.Fatal(err)
		}
		if err := Check(context.Background(), r); err != nil && !errors.Is(err, model.ErrCorrupt) {
			t.Fatal(err)
		}
	}
}

// TestDumpOfDamage dumps parts with a spoilt page; it must come to an end.
func TestDumpOfDamage(t *testing.T) {
	racetest.SkipSerial(t)
	whole := smallPart(t, Fast)
	r, err := Open(context.Background(), bytes.NewReader(whole), int64(len(whole)))
	parttest.Must(t, err)
	for at := file.HeaderBytes; at < int(r.FooterOff()); at++ {
		b := bytes.Clone(whole)
		b[at] ^= 0x55
		if r, err := Open(context.Background(), bytes.NewReader(b), int64(len(b))); err == nil {
			_ = Dump(context.Background(), discard{}, r)
		}
	}
}
