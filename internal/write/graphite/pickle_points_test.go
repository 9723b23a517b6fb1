package graphite

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
)

// golden is one line of pickle/testdata/golden.txt: a recorded pickle, and what carbon stores for it on
// Python 2 and 3.
type golden struct {
	name, writer string
	pickle       []byte
	carbon       [2]string
}

func readGolden(t testing.TB) (list []golden) {
	t.Helper()
	text, err := os.ReadFile("pickle/testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	var carbon [2]string
	for line := range strings.Lines(string(text)) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		b, err := hex.DecodeString(columns[2])
		if err != nil || len(columns) != 6 {
			t.Fatalf("line %d: %v", len(list)+1, err)
		}
		for i, c := range columns[4:] {
			if c != `"` {
				carbon[i] = c
			}
		}
		list = append(list, golden{columns[0], columns[1], b, carbon})
	}
	return list
}

// pickled is the outcome of decoding a pickle.
type pickled struct {
	rows []string
	counts
	n   int
	why []string
}

func readPickle(t testing.TB, in []byte) (got pickled, err error) {
	t.Helper()
	d := new(decoder)
	l := &Listener{metrics: newMetrics(nil, func() float64 { return 0 })}
	v, err := d.decode(in, &reservation{l: l, overBudget: true}, 1<<30)
	if err != nil {
		return got, err
	}
	p := newTestParser()
	p.reportBad = func(item []byte, why string) {
		if len(got.why) < 1000 {
			got.why = append(got.why, why+": "+string(item))
		}
	}
	it := pickledPoints{p: p, d: &d.d, e: d.d.Elements(v), n: d.d.Len(v)}
	got.n = it.n
	if got.n > 1<<20 {
		return got, nil
	}
	for more := true; more; {
		c := new(chunk)
		more = it.feed(c)
		if more && !c.full() {
			t.Fatal("there are more items, and room")
		}
		for i := range c.rows() {
			var lb model.LabelsBuilder
			c.BuildLabels(i, &lb)
			l, err := lb.Append(nil)
			if err != nil {
				t.Fatal(err)
			}
			if key := model.Labels(l).Key(seed, model.Metrics); key != c.keys[i] {
				t.Fatalf("%s: key %s, want %s", model.Labels(l), c.keys[i], key)
			}
			name := model.Labels(l).String()
			if c.times[i]%second != 0 {
				t.Fatalf("%s at %d", name, c.times[i])
			}
			got.rows = append(got.rows, fmt.Sprintf("%s=%016x@%d", name, c.values[i], c.times[i]/second))
		}
	}
	got.counts = p.counts
	return got, nil
}

// deviations has the cases in which carbon stores something else: it meets an error that it does not
// handle, closes the connection and loses the rest of the pickle. Shale drops the bad point only.
var deviations = map[string]string{
	"bad-items":  `{__name__="z"}=3ff0000000000000@1700000000`,
	"none":       `{__name__="z"}=3ff0000000000000@1700000000`,
	"bytes":      `{__name__="a.b"}=3ff0000000000000@1700000000 {__name__="a.c"}=4004000000000000@1700000000 {__name__="z"}=4008000000000000@1700000000`,
	"huge":       `{__name__="b"}=3ff0000000000000@1700000000`,
	"minus-huge": ``,
	"time-nan":   `{__name__="a"}=3ff0000000000000@1700000000 {__name__="c"}=4008000000000000@1700000000`,
	"time-inf":   `{__name__="a"}=3ff0000000000000@1700000000 {__name__="c"}=4008000000000000@1700000000`,
	"time-far":   `{__name__="a"}=3ff0000000000000@1700000000 {__name__="e"}=4014000000000000@1700000000`,
	"recursive":  `{__name__="a"}=3ff0000000000000@1700000000`,
	// A value that no list of points contains makes Shale refuse the whole pickle.
	"dict-item": "", "set": "", "frozenset": "", "bytearray": "",
}

// carbonRows translates what carbon stores: the same rows without those whose path or time Shale does
// not accept.
func carbonRows(t *testing.T, column string) string {
	t.Helper()
	var rows []string
	for _, row := range strings.Fields(column) {
		name, rest, ok := strings.Cut(row, "=")
		if !ok {
			continue // the name of an error
		}
		path, err := hex.DecodeString(name[1:])
		if err != nil {
			t.Fatal(err)
		}
		_, stamp, _ := strings.Cut(rest, "@")
		seconds, err := strconv.ParseFloat(stamp, 64)
		if err != nil {
			t.Fatal(err)
		}
		if l, ok := slowLabels(string(path)); ok && utf8.Valid(path) && math.Abs(seconds) <= maxSeconds {
			rows = append(rows, l.String()+"="+rest)
		}
	}
	return strings.Join(rows, " ")
}

func TestCarbonAgrees(t *testing.T) {
	agreed := map[string]int{}
	for _, g := range readGolden(t) {
		got, err := readPickle(t, g.pickle)
		if err != nil {
			got = pickled{}
		}
		rows := strings.Join(got.rows, " ")
		if got.n != len(got.rows)+got.bad+got.nan+got.badTime {
			t.Errorf("%s by %s: %d items are %d rows, %+v", g.name, g.writer, got.n, len(got.rows), got.counts)
		}
		want, deviates := deviations[g.name]
		switch {
		case deviates:
			if g.name == "bytes" && strings.Contains("012", g.writer[len(g.writer)-1:]) {
				want = "" // these protocols write bytes as a call
			}
			if rows != want {
				t.Errorf("%s by %s: got  %s\nwant %s", g.name, g.writer, rows, want)
			}
			continue
		case g.name == "many":
			for i, row := range got.rows {
				if row != fmt.Sprintf(`{__name__="a"}=%016x@%d`, math.Float64bits(float64(i)), i) {
					t.Fatalf("%s by %s: row %d is %s", g.name, g.writer, i, row)
				}
			}
			if len(got.rows) != 1001 {
				t.Fatalf("%s by %s: %d rows", g.name, g.writer, len(got.rows))
			}
		case rows != carbonRows(t, g.carbon[0]) && rows != carbonRows(t, g.carbon[1]):
			t.Errorf("%s by %s: got  %s\ncarbon on 2 %s\ncarbon on 3 %s\n%v, %q", g.name, g.writer, rows, g.carbon[0], g.carbon[1], err, got.why)
		}
		agreed[g.name] += len(got.rows)
	}
	for _, name := range []string{"tuples", "lists", "texts", "ints", "unicode", "every-byte", "tags", "times", "og-rek", "java", "many"} {
		if agreed[name] == 0 {
			t.Errorf("carbon and we store nothing of %s", name)
		}
	}
}

func FuzzItems(f *testing.F) {
	for i, g := range readGolden(f) {
		if len(g.pickle) < 500 && i%3 == 1 {
			f.Add(g.pickle)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := readPickle(t, in)
		if err != nil || got.n > 1<<20 {
			return
		}
		if got.n != len(got.rows)+got.bad+got.nan+got.badTime || got.lines != got.n {
			t.Fatalf("%d items are %d rows, %+v", got.n, len(got.rows), got.counts)
		}
		for _, why := range got.why {
			if len(why) > 20_000 || !utf8.ValidString(why) {
				t.Fatalf("%q", why)
			}
		}
	})
}

// points is a pickle of points of one time, in protocol 2 and without a memo.
func points(n int, name func(i int) string, value func(i int) float64) []byte {
	b := []byte("\x80\x02](")
	for i := range n {
		if i > 0 && i%1000 == 0 {
			b = append(b, "e("...)
		}
		s := name(i)
		b = binary.LittleEndian.AppendUint32(append(b, 'X'), uint32(len(s)))
		b = binary.LittleEndian.AppendUint32(append(append(b, s...), 'J'), 1_700_000_000)
		b = binary.BigEndian.AppendUint64(append(b, 'G'), math.Float64bits(value(i)))
		b = append(b, 0x86, 0x86)
	}
	return append(b, "e."...)
}

func TestItemsAllocateNothing(t *testing.T) {
	for _, in := range map[string][]byte{
		"plain":  points(1000, func(i int) string { return fmt.Sprintf("haggar.agent.1.metrics.%d", i) }, func(i int) float64 { return float64(i) }),
		"tagged": points(1000, func(i int) string { return fmt.Sprintf("disk.used;host=web%d;dc=eu", i) }, func(i int) float64 { return float64(i) }),
		"bad":    points(1000, func(i int) string { return "a;b" }, func(i int) float64 { return float64(i) }),
		"texts":  []byte("(l" + strings.Repeat("(S'a.\\x41'\n(L1700000000L\nS'1e5'\ntta", 1000) + "."),
	} {
		d := new(decoder)
		l := &Listener{metrics: newMetrics(nil, func() float64 { return 0 })}
		m := &reservation{l: l, overBudget: true}
		p, c := newTestParser(), new(chunk)
		alloctest.AtMost(t, 0, 10, func() {
			c.reset()
			v, err := d.decode(in, m, 1<<30)
			if err != nil {
				t.Fatal(err)
			}
			it := pickledPoints{p: p, d: &d.d, e: d.d.Elements(v), n: d.d.Len(v)}
			if k, bytes := it.nextSlice(it.n); k != 1000 || bytes < 1000*rowBytes {
				t.Fatal(k, bytes)
			}
			if it.feed(c) || c.rows()+p.counts.bad == 0 {
				t.Fatal("no rows")
			}
		})
	}
}

func BenchmarkItems(b *testing.B) {
	const n = 500
	in := points(n, func(i int) string { return fmt.Sprintf("haggar.agent.1.metrics.%d", i) }, func(i int) float64 { return float64(i) })
	d := new(decoder)
	m := &reservation{l: &Listener{metrics: newMetrics(nil, func() float64 { return 0 })}, overBudget: true}
	p, c := newTestParser(), new(chunk)
	b.ReportAllocs()
	for b.Loop() {
		c.reset()
		v, err := d.decode(in, m, 1<<30)
		if err != nil {
			b.Fatal(err)
		}
		it := pickledPoints{p: p, d: &d.d, e: d.d.Elements(v), n: d.d.Len(v)}
		it.nextSlice(it.n)
		it.feed(c)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/point")
	b.ReportMetric(float64(len(in))/n, "bytes/point")
}
