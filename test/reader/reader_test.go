//go:build e2e

package reader

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// forms are the forms of the format. The test must meet each of them, or the comparison is incomplete.
var forms = []string{
	"page none", "page s2", "page zstd", "page lines",
	"s2 literal", "s2 long literal", "s2 near copy", "s2 copy", "s2 repeat", "s2 long repeat",
	"ints const", "ints runs", "ints packed", "ints delta", "ints divisor", "ints exceptions", "ints radix", "ints steps",
	"values decimal", "values patched", "values bits", "values xor", "values raw", "values near", "ends of sequences",
	"times of single rows", "dictionary of times", "starts",
	"integer histograms, short", "integer histograms, long", "float histograms, short", "float histograms, long",
	"index of exemplars", "index of masks",
	"further index of keys", "further index of postings", "further index of samples",
	"series over several pages", "several sources",
	"text of one series", "text of several series", "filters", "slices of filters", "metadata plain", "metadata dictionary",
	"lines numbers", "lines digits", "lines hex", "lines upper hex", "lines strings", "lines dates", "lines clocks",
}

// findPython returns an interpreter with the modules of the reader. Debian's packages are for Debian's
// interpreter, and another one may come first in the path.
func findPython(t *testing.T) string {
	t.Helper()
	var problems []byte
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		out, err := exec.Command(python, "-c", "import sys, zstandard, xxhash; assert sys.version_info >= (3, 9), sys.version").CombinedOutput()
		if err == nil {
			return python
		}
		problems = fmt.Appendf(problems, "%s: %v\n%s", python, err, out)
	}
	t.Fatalf("Python 3 with zstandard and xxhash is needed; on Debian: apt-get install python3 python3-zstandard python3-xxhash (or make test as root)\n%s", problems)
	return ""
}

// checker compares the two readers on one file after the other.
type checker struct {
	python string
	done   map[string]bool
	seen   map[string]int // forms
	// Counts of the comparisons, so that a world that no longer tests enough is noticed.
	blocks, parts, series, floats, histograms, exemplars, starts, lines int
}

// check compares the output of both readers for a file, once.
func (c *checker) check(t *testing.T, name string) {
	t.Helper()
	if c.done[name] {
		return
	}
	c.done[name] = true
	var out, log bytes.Buffer
	cmd := exec.Command(c.python, "reader.py", name)
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("reader.py %s: %v\n%s", name, err, log.Bytes())
	}
	var seen map[string]int
	if err := json.Unmarshal(log.Bytes(), &seen); err != nil {
		t.Fatalf("reader.py %s: %v\n%s", name, err, log.Bytes())
	}
	for form, n := range seen {
		c.seen[form] += n
	}
	c.compare(t, name, &out)
}

func (c *checker) compare(t *testing.T, name string, out *bytes.Buffer) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	r, err := part.Open(ctx, f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	theirs := bufio.NewReader(out)
	var ours []byte
	for s, err := range part.All(ctx, r.Stream()) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if ours, err = c.appendSeries(ours[:0], s, r.Meta().Labels); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		line, err := theirs.ReadBytes('\n')
		if err != nil || !bytes.Equal(line, ours) {
			t.Fatalf("%s, after %d series: %v\nreader.py %s\nthe reader %s", name, c.series, err, line, ours)
		}
		c.series++
	}
	if n := theirs.Buffered() + out.Len(); n > 0 {
		t.Fatalf("%s: reader.py has %d bytes more", name, n)
	}
}

// appendSeries writes the line of a series as reader.py does.
func (c *checker) appendSeries(dst []byte, s *part.Series, labels bool) ([]byte, error) {
	dst = appendText(append(dst, `{"tenant":`...), []byte(s.Tenant))
	dst = append(append(append(dst, `,"key":"`...), s.Key.String()...), `","labels":`...)
	if labels {
		dst = appendLabels(dst, s.Labels)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"samples":[`...)
	rows := &s.Rows.Samples
	for i, at := range rows.Times {
		if i > 0 {
			dst = append(dst, ',')
		}
		start := rows.Start(i)
		if start != 0 {
			c.starts++
		}
		dst = fmt.Appendf(dst, "[%d,%d,", at, start)
		switch k := rows.Kind(i); k {
		case model.KindFloat:
			c.floats++
			dst = strconv.AppendUint(dst, rows.Values[i], 10)
		case model.KindHistogram:
			c.histograms++
			var err error
			if dst, err = appendHistogram(dst, rows.Blob(i)); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("a sample of kind %v", k)
		}
		dst = append(dst, ']')
	}
	dst = append(dst, `],"exemplars":[`...)
	rows = &s.Rows.Exemplars
	for i, at := range rows.Times {
		if i > 0 {
			dst = append(dst, ',')
		}
		c.exemplars++
		e, err := model.ParseExemplar(rows.Blob(i))
		if err != nil {
			return nil, err
		}
		dst = fmt.Appendf(dst, "[%d,%d,", at, e.Value)
		dst = append(appendLabels(dst, e.Labels), ']')
	}
	dst, err := c.appendLines(append(dst, `],"text":[`...), s.Text)
	return append(dst, "]}\n"...), err
}

// appendLines writes the lines of a series.
func (c *checker) appendLines(dst []byte, text part.Text) ([]byte, error) {
	if text == nil {
		return dst, nil
	}
	ctx := context.Background()
	comma := false
	run := text.Run(ctx, model.Always())
	for run.Next() {
		rows, err := run.Piece().Rows(ctx)
		if err != nil {
			return nil, err
		}
		for i, at := range rows.Times {
			if comma {
				dst = append(dst, ',')
			}
			comma = true
			c.lines++
			dst = appendText(fmt.Appendf(dst, "[%d,", at), rows.Line(i))
			dst = append(appendLabels(append(dst, ','), rows.MetadataAt(i)), ']')
		}
	}
	return dst, run.Err()
}

// appendHistogram writes the shape, the spans, and the numbers in the order of parts, with buckets that are
// counts.
func appendHistogram(dst, blob []byte) ([]byte, error) {
	var h model.Histogram
	if err := h.Parse(blob); err != nil {
		return nil, err
	}
	if again := model.AppendHistogram(nil, &h); !bytes.Equal(again, blob) {
		return nil, fmt.Errorf("the histogram %x is not the blob %x", again, blob)
	}
	flags := 0
	if h.Gauge {
		flags |= 1
	}
	if h.Float {
		flags |= 2
	}
	list := func(n int, item func(i int)) {
		dst = append(dst, '[')
		for i := range n {
			if i > 0 {
				dst = append(dst, ',')
			}
			item(i)
		}
		dst = append(dst, ']')
	}
	dst = fmt.Appendf(dst, "[[%d,%d,%d,", flags, h.Schema, h.ZeroThreshold)
	list(len(h.Custom), func(i int) { dst = strconv.AppendUint(dst, h.Custom[i], 10) })
	dst = append(dst, ']')
	for _, spans := range [][]model.HistogramSpan{h.PositiveSpans, h.NegativeSpans} {
		dst = append(dst, ',')
		list(len(spans), func(i int) { dst = fmt.Appendf(dst, "[%d,%d]", spans[i].Offset, spans[i].Length) })
	}
	dst = fmt.Appendf(dst, ",%d", h.ZeroCount)
	for _, buckets := range [][]uint64{h.Positive, h.Negative} {
		var count uint64
		for _, b := range buckets {
			if count += b; h.Float {
				count = b
			}
			dst = fmt.Appendf(dst, ",%d", count)
		}
	}
	return fmt.Appendf(dst, ",%d,%d]", h.Count, h.Sum), nil
}

func appendLabels(dst []byte, l model.Labels) []byte {
	dst = append(dst, '{')
	comma := false
	for n, v, rest, ok := l.Next(); ok; n, v, rest, ok = rest.Next() {
		if comma {
			dst = append(dst, ',')
		}
		comma = true
		dst = append(appendText(dst, n), ':')
		dst = appendText(dst, v)
	}
	return append(dst, '}')
}

// appendText writes a JSON string of any bytes as Python does: encoding/json escapes more.
func appendText(dst, s []byte) []byte {
	dst = append(dst, '"')
	for _, b := range s {
		switch {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b == '\n':
			dst = append(dst, `\n`...)
		case b == '\r':
			dst = append(dst, `\r`...)
		case b == '\t':
			dst = append(dst, `\t`...)
		case b == '\b':
			dst = append(dst, `\b`...)
		case b == '\f':
			dst = append(dst, `\f`...)
		case b < ' ':
			dst = fmt.Appendf(dst, `\u%04x`, b)
		default:
			dst = append(dst, b)
		}
	}
	return append(dst, '"')
}

// TestReader writes a day of a small world in two nodes, with late rows, ships and compactions in between,
// and compares the output of the two readers for every file.
func TestReader(t *testing.T) {
	w := newWorld(t, &checker{python: findPython(t), done: map[string]bool{}, seen: map[string]int{}})
	w.live(t)
	c := w.checker
	t.Logf("%d blocks and %d parts with %d series: %d floats, %d histograms, %d exemplars, %d starts, %d lines; forms: %v",
		c.blocks, c.parts, c.series, c.floats, c.histograms, c.exemplars, c.starts, c.lines, c.seen)
	for _, form := range forms {
		if c.seen[form] == 0 {
			t.Errorf("no %q in any file", form)
		}
	}
	if c.blocks < 10 || c.parts < 4 || c.floats < 100_000 || c.histograms < 1000 || c.exemplars < 500 || c.starts < 1000 || c.lines < 10_000 {
		t.Error("what is compared is too dull")
	}
	t.Run("FlippedByte", func(t *testing.T) { flip(t, c.python, w.smallest(t)) })
}

// TestTree compares the readers on a part with the fewest names of which there is a tree.
func TestTree(t *testing.T) {
	name := filepath.Join(t.TempDir(), "block")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := part.NewWriter(f, part.WriterOptions{Signal: model.Metrics, Seed: 7, Labels: true, Level: part.Dense})
	type keyed struct {
		key    model.Key
		labels model.Labels
	}
	var all []keyed
	for i := range 21_000 {
		pairs := []string{"__name__", fmt.Sprintf("prod.web%d.cpu%d.größe", i/20, i%20)}
		if i%50 == 0 {
			pairs = append(pairs, "dc", "eu") // has no place in the tree
		}
		l := model.LabelsOf(pairs...)
		all = append(all, keyed{l.Key(7, model.Metrics), l})
	}
	slices.SortFunc(all, func(a, b keyed) int { return a.key.Compare(b.key) })
	rows := &model.SeriesRows{Samples: model.Rows{Times: []int64{1e18}, Values: []uint64{0}}}
	for _, s := range all {
		if err := errors.Join(w.Series("t", s.key, s.labels), w.Rows(rows)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	c := &checker{python: findPython(t), done: map[string]bool{}, seen: map[string]int{}}
	if c.check(t, name); c.seen["trees"] != 1 {
		t.Errorf("%d trees, want 1", c.seen["trees"])
	}
}

// flip changes a bit at positions all over a block: everything except the header and its copy at the end has
// a checksum.
func flip(t *testing.T, python, name string) {
	block, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	read := func(b []byte) (string, error) {
		bad := filepath.Join(t.TempDir(), "block")
		if err := os.WriteFile(bad, b, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(python, "reader.py", bad).CombinedOutput()
		return string(out), err
	}
	const flips = 40
	for i := range flips {
		at := 8 + i*(len(block)-17)/(flips-1)
		b := bytes.Clone(block)
		b[at] ^= 1 << (i % 8)
		if out, err := read(b); err == nil || !bytes.Contains([]byte(out), []byte("checksum")) {
			t.Errorf("byte %d of %d flipped: %v\n%s", at, len(block), err, out)
		}
	}
	for _, b := range [][]byte{nil, block[:20], block[:len(block)-1], block[1:], append(bytes.Clone(block), 0)} {
		if out, err := read(b); err == nil {
			t.Errorf("%d of %d bytes are taken for a block:\n%s", len(b), len(block), out)
		}
	}
}
