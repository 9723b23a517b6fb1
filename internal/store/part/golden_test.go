package part

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/shaledb/shale/internal/model"
)

// TestGolden writes the parts that the files in testdata/golden describe, a series a line:
//
//	tenant label=value ... : time=value time=value^start ...
//
// and compares every byte. A value is a number or 16 hexadecimal digits after 0x. Run with -rewrite to make the output
// anew; a change of it is a change of the format.
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
			var all []oneSeries
			for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
				if line != "" {
					all = append(all, parseSeries(t, line))
				}
			}
			r, b := writePart(t, sortSeries(all), o)
			must(t, Check(context.Background(), r))
			var out strings.Builder
			must(t, Dump(context.Background(), &out, r))
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

func parseSeries(t *testing.T, line string) oneSeries {
	t.Helper()
	head, tail, _ := strings.Cut(line, ":")
	var pairs []string
	fields := strings.Fields(head)
	for _, f := range fields[1:] {
		name, value, _ := strings.Cut(f, "=")
		pairs = append(pairs, name, value)
	}
	l := model.LabelsOf(pairs...)
	s := oneSeries{tenant: fields[0], key: l.Key(testSeed, model.Metrics), labels: l}
	for _, f := range strings.Fields(tail) {
		at, value, _ := strings.Cut(f, "=")
		value, start, _ := strings.Cut(value, "^")
		var startTime int64
		if start != "" {
			startTime = parseInt(t, start)
		}
		s.rows.Append(parseInt(t, at), parseValue(t, value), startTime)
	}
	return s
}

func parseInt(t *testing.T, s string) int64 {
	v, err := strconv.ParseFloat(s, 64)
	must(t, err)
	return int64(v)
}

func parseValue(t *testing.T, s string) uint64 {
	if digits, ok := strings.CutPrefix(s, "0x"); ok {
		v, err := strconv.ParseUint(digits, 16, 64)
		must(t, err)
		return v
	}
	v, err := strconv.ParseFloat(s, 64)
	must(t, err)
	return math.Float64bits(v)
}

// TestDumpOfDamage dumps parts with a spoilt page; it must come to an end.
func TestDumpOfDamage(t *testing.T) {
	whole := smallPart(t, Fast)
	r, err := Open(context.Background(), bytes.NewReader(whole), int64(len(whole)))
	must(t, err)
	for at := headerBytes; at < int(r.footerOff); at++ {
		b := bytes.Clone(whole)
		b[at] ^= 0x55
		if r, err := Open(context.Background(), bytes.NewReader(b), int64(len(b))); err == nil {
			_ = Dump(context.Background(), discard{}, r)
		}
	}
}
