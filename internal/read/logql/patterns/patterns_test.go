package patterns

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// matching returns a function that says whether |> finds a pattern in a line.
func matching(t testing.TB, pattern string) func([]byte) bool {
	t.Helper()
	p, err := line.Compile([]syntax.Stage{&syntax.LineFilter{Op: syntax.LinePattern, Any: []syntax.LineOperand{{Value: pattern}}}})
	if err != nil {
		t.Fatalf("%q: %v", pattern, err)
	}
	f := p.Filter()
	if f == nil { // every line passes
		return func([]byte) bool { return true }
	}
	return func(line []byte) bool {
		rows := &model.TextRows{Times: []int64{0}, Bytes: line, Ends: []uint32{uint32(len(line))}}
		return len(f.Select(nil, rows, 0, 1)) == 1
	}
}

// mineAll mines lines and returns the cluster of each. None may be forgotten.
func mineAll(lines [][]byte) (*Miner, []*cluster) {
	m, cut := NewMiner(), NewCutter()
	of := make([]*cluster, len(lines))
	for i, l := range lines {
		cut.tokens.cut(l)
		of[i] = m.find(cut.tokens)
		of[i].counts = addTo(of[i].counts, 0, 1)
		m.lines++
		of[i].used = m.lines
	}
	return m, of
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct{ name, lines, want string }{
		{"numbers", "GET /cart took 12ms\nGET /cart took 7ms\nGET /cart took 7ms", "GET /cart took <_>"},
		{"words", "user ann logged in\nuser bob logged in", "user <_> logged in"},
		{"unlike", "user ann logged in\ndisk /dev/sda is full", "disk /dev/sda is full\nuser ann logged in"},
		{"structures", "a=1 b=2\na=1, b=2", "a=1 b=2\na=1, b=2"},
		{"times of day", "12:30:45.1 started job 7\n12:31:46.2 started job 9", "12:<_> started job <_>"},
		{"a colon after a time", "12:30:45: job\n12:31:46: job", "12:<_>:<_>: job"},
		{"JSON", `{"level":"info","ms":12,"path":"/a/b"}` + "\n" + `{"level":"info","ms":15,"path":"/a/c"}`, `{"level":"info","ms":<_>,"path":"<_>"}`},
		{"logfmt", `level=info msg="slow query" ms=12` + "\n" + `level=info msg="slow query" ms=15`, `level=info msg="slow query" ms=<_>`},
		{"captures", "<a> <_> x y\n<b> <c> x y", "<<_>> <<_>> x y"},
		{"a less-than sign", "a < 5 and b\na < 7 and b", "a < <_> and b"},
		{"invalid UTF-8", "caf\xff is open now", "<_> is open now"},
		{"an empty line", "", ""},
		{"space", "  \t ", "  \t "},
		{"many words", strings.Repeat("x ", 100), strings.Repeat("x ", maxWords) + wildcard},
		{"a long word", strings.Repeat("x", 3000), wildcard},
		{"a long line", strings.Repeat("x", 1500) + " " + strings.Repeat("y", 1500), strings.Repeat("x", 1500) + " " + wildcard},
		{"single words", "start\nstop", "start\nstop"},
	} {
		var lines [][]byte
		for l := range strings.SplitSeq(c.lines, "\n") {
			lines = append(lines, []byte(l))
		}
		_, of := mineAll(lines)
		var got []string
		for i, x := range of {
			if !matching(t, x.String())(lines[i]) {
				t.Errorf("%s: %q does not match %q", c.name, x, lines[i])
			}
			if !strings.Contains("\n"+strings.Join(got, "\n")+"\n", "\n"+x.String()+"\n") || len(got) == 0 {
				got = append(got, x.String())
			}
		}
		want := strings.Split(c.want, "\n")
		if fmt.Sprint(len(got)) != fmt.Sprint(len(want)) {
			t.Errorf("%s: got %q, expected %q", c.name, got, want)
			continue
		}
		for _, w := range want {
			if !strings.Contains("\n"+strings.Join(got, "\n")+"\n", "\n"+w+"\n") {
				t.Errorf("%s: got %q, expected %q", c.name, got, want)
			}
		}
	}
}

// checkMatches checks that the pattern of each line matches it, and that the miner's account is right.
func checkMatches(t testing.TB, lines [][]byte) {
	t.Helper()
	m, of := mineAll(lines)
	filters := make(map[string]func([]byte) bool)
	for i, c := range of {
		if m.structures[c.structure] == nil {
			continue // forgotten
		}
		pattern := c.String()
		if filters[pattern] == nil {
			filters[pattern] = matching(t, pattern)
		}
		if !filters[pattern](lines[i]) {
			t.Fatalf("%q does not match %q", pattern, lines[i])
		}
	}
	bytes, clusters := int64(minerBytes), 0
	for _, list := range m.structures {
		for _, c := range list {
			bytes += c.size() - bucketBytes*int64(cap(c.counts))
			clusters++
		}
		if len(list) > maxSimilar {
			t.Fatalf("%d templates of one structure", len(list))
		}
	}
	if m.clusters != clusters || clusters > maxClusters {
		t.Fatalf("%d clusters, %d are counted", clusters, m.clusters)
	}
}

// Every pattern matches the lines that it was made of: all kinds of separators between words, and words that
// hold parts of each other.
func TestPatternsMatchTheirLines(t *testing.T) {
	words := []string{"a", "b", "ab", "1", "12", "x:y", "_", "<_>", "<a>", "é", "\xff", "-", "a.b", "/a/b", "a\\n", "a b", strings.Repeat("w", 300)}
	between := []string{" ", "  ", ":", ": ", "=", "=\"", "\" ", "<", ">", "><", ",", "", "\n"}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var lines [][]byte
		for range 200 {
			var l []byte
			for range r.IntN(8) + 1 {
				l = append(append(l, words[r.IntN(len(words))]...), between[r.IntN(1+r.IntN(len(between)))]...)
			}
			if r.IntN(50) == 0 {
				l = bytes.Repeat(l, 1+r.IntN(100))
			}
			lines = append(lines, l)
		}
		checkMatches(t, lines)
	}
}

func FuzzMiner(f *testing.F) {
	f.Add([]byte("a: b\na: c\n<_>: c"))
	f.Add([]byte("12:30:45: x\n12:31:46: y"))
	f.Add([]byte(`{"a":{"b":1}}` + "\n" + `{"a":{"b":2}}`))
	f.Fuzz(func(t *testing.T, text []byte) { checkMatches(t, bytes.Split(text, []byte("\n"))) })
}

// Lines of a known pattern cost no memory.
func TestMinerAllocations(t *testing.T) {
	m, cut := NewMiner(), NewCutter()
	lines := [][]byte{[]byte(`level=info msg="slow query" ms=12 user=ann`), []byte(`level=info msg="slow query" ms=15 user=bob`)}
	n := 0
	add := func() {
		m.Add(cut, lines[n%2], 0, 1)
		n++
	}
	add()
	add()
	if got := testing.AllocsPerRun(100, add); got > 0 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkMiner(b *testing.B) {
	m, cut := NewMiner(), NewCutter()
	lines := make([][]byte, 1000)
	for i := range lines {
		lines[i] = fmt.Appendf(nil, `{"level":"info","ts":"2026-01-01T00:00:%02dZ","msg":"request done","path":"/api/v1/users/%d","ms":%d}`, i%60, i, i%97)
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		m.Add(cut, lines[n%len(lines)], uint32(n/1000*fine), 1)
	}
}

func TestCounts(t *testing.T) {
	var c []bucket
	for _, begin := range []uint32{20, 20, 40, 30, 10, 700, 1250} {
		c = addTo(c, begin, 1)
	}
	if got := fmt.Sprint(c); got != "[{10 1} {20 2} {30 1} {40 1} {700 1} {1250 1}]" {
		t.Error(got)
	}
	if got := fmt.Sprint(coarsen(slices.Clone(c), 1200)); got != "[{0 5} {600 1} {1250 1}]" {
		t.Error(got)
	}
	if got := fmt.Sprint(forget(coarsen(c, 1200), 600)); got != "[{600 1} {1250 1}]" {
		t.Error(got)
	}
}

// Totals put buckets into steps, and spread coarse ones. No line is lost in between.
func TestTotals(t *testing.T) {
	m, cut := NewMiner(), NewCutter()
	for i := range 120 {
		m.Add(cut, fmt.Appendf(nil, "job %d is done", i), uint32(i*10), 1)
	}
	q := &model.Quota{MaxBytes: 1 << 20}
	for _, c := range []struct {
		start, end, step, fineSince int64
		want                        string
	}{
		{0, 2000, 600, 0, "[{0 60} {600 60}]"},
		{300, 900, 600, 0, "[{0 30} {600 30}]"},
		{0, 2000, 1, 0, ""},
		{0, 1200, 300, math.MaxInt64, "[{0 30} {300 30} {600 30} {900 30}]"},
		{150, 1050, 300, math.MaxInt64, "[{0 15} {300 30} {600 30} {900 15}]"},
	} {
		other := NewMiner()
		for _, list := range m.structures {
			x := *list[0]
			if x.counts = append([]bucket(nil), x.counts...); c.fineSince > 0 {
				x.counts = coarsen(x.counts, 1200)
			}
			other.structures[x.structure] = []*cluster{&x}
		}
		to := NewTotals(c.start, c.end, c.step, q)
		if err := to.add(other, "info", 0, c.fineSince); err != nil {
			t.Fatal(err)
		}
		got, err := to.Series()
		if err != nil || len(got) != 1 || got[0].Pattern != "job <_> is done" || got[0].Level != "info" {
			t.Fatalf("%+v %v", got, err)
		}
		if c.want != "" && fmt.Sprint(got[0].Samples) != c.want {
			t.Errorf("%+v: %v", c, got[0].Samples)
		}
		if c.want == "" && len(got[0].Samples) != 120 {
			t.Errorf("%d samples", len(got[0].Samples))
		}
	}
	to := NewTotals(0, 1e9, 10, &model.Quota{MaxBytes: 1000})
	if err := to.add(m, "info", 0, 0); err == nil {
		t.Error("samples are not charged")
	}
}

// TestCorpora prints how well patterns cover the lines of a folder of logs: PATTERNS_CORPORA=folder.
func TestCorpora(t *testing.T) {
	folder := os.Getenv("PATTERNS_CORPORA")
	if folder == "" {
		t.Skip("PATTERNS_CORPORA is not set")
	}
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".log") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		lines := bytes.Split(bytes.TrimSuffix(text[:min(len(text), 20<<20)], []byte("\n")), []byte("\n"))
		m, of := mineAll(lines)
		matched, frequent, alive := 0, 0, 0
		filters := make(map[*cluster]func([]byte) bool)
		lists := make(map[*cluster]float32)
		for _, list := range m.structures {
			for _, c := range list {
				lists[c] = c.counts[0].lines
			}
		}
		for i, c := range of {
			if filters[c] == nil {
				filters[c] = matching(t, c.String())
			}
			if filters[c](lines[i]) {
				matched++
			}
			if n, ok := lists[c]; ok {
				alive++
				if n >= minLines {
					frequent++
				}
			}
		}
		t.Logf("%-40s %8d lines, %4d patterns, %6.2f%% match, %6.2f%% of lines are kept, %6.2f%% in frequent patterns",
			filepath.Base(path), len(lines), m.clusters, 100*float64(matched)/float64(len(lines)), 100*float64(alive)/float64(len(lines)), 100*float64(frequent)/float64(len(lines)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
