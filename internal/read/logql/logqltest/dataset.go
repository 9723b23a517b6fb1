package logqltest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
)

// Line is a line of a stream.
type Line struct {
	Time     int64 // Unix nanoseconds
	Text     string
	Metadata []string // name, value, ... sorted by name
}

// Stream is lines in the order of their arrival.
type Stream struct {
	Labels []string // name, value, ... sorted by name
	Lines  []Line
}

// Dataset is the streams that queries are run over.
type Dataset struct {
	Name    string
	Kind    Kind
	Streams []Stream
}

// Kind says how the lines of a data set look.
type Kind string

// The kinds of data sets.
const (
	JSON     Kind = "json"
	Logfmt   Kind = "logfmt"
	Access   Kind = "access"   // as a web server writes them
	Metadata Kind = "metadata" // plain lines, with values in structured metadata
	Broken   Kind = "broken"   // JSON and logfmt, cut, and with values that cannot be read as numbers
	Resets   Kind = "resets"   // counters that fall to zero
	Gaps     Kind = "gaps"     // long times without lines
	Ties     Kind = "ties"     // many lines of one time, and few values
	Extreme  Kind = "extreme"  // infinities, NaN, the largest and the smallest numbers
	Edges    Kind = "edges"    // times at whole seconds and one nanosecond off
)

// Kinds lists all kinds.
func Kinds() []Kind {
	return []Kind{JSON, Logfmt, Access, Metadata, Broken, Resets, Gaps, Ties, Extreme, Edges}
}

// Begin is the time about which data sets begin, and Span how long they last.
const (
	Begin = int64(1_700_000_000_000_000_000)
	Span  = int64(600_000_000_000)
)

// Datasets returns n data sets of up to that many lines. Kinds take turns.
func Datasets(n, lines int, seed uint64) []*Dataset {
	var all []*Dataset
	for i := range n {
		kind := Kinds()[i%len(Kinds())]
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		all = append(all, newDataset(r, kind, fmt.Sprintf("%s-%d", kind, i/len(Kinds())), lines))
	}
	return all
}

func newDataset(r *rand.Rand, kind Kind, name string, most int) *Dataset {
	d := &Dataset{Name: name, Kind: kind}
	w := &writer{r: r, kind: kind}
	streams := 1 + r.IntN(8)
	lines := most/3 + r.IntN(most*2/3)
	apps, envs := []string{"web", "db", "api"}, []string{"prod", "dev"}
	seen := map[string]bool{}
	for range streams {
		l := []string{"app", apps[r.IntN(3)], "env", envs[r.IntN(2)]}
		if r.IntN(3) == 0 {
			l = append(l, "level", w.one("info", "error"))
		}
		l = append(l, "pod", w.one("p1", "p2", "p3", "p4"))
		if key := fmt.Sprint(l); !seen[key] {
			seen[key] = true
			d.Streams = append(d.Streams, Stream{Labels: l})
		}
	}
	for i := range d.Streams {
		w.counter = float64(r.IntN(100))
		s := &d.Streams[i]
		n := max(1, lines/len(d.Streams))
		for j := range n {
			s.Lines = append(s.Lines, Line{Time: w.time(j, n), Text: w.text(), Metadata: w.metadata()})
		}
		w.disorder(s)
	}
	return d
}

// disorder makes some lines late and repeats others.
func (w *writer) disorder(s *Stream) {
	if w.kind != Resets && w.r.IntN(3) == 0 {
		for range len(s.Lines) / 5 {
			i, j := w.r.IntN(len(s.Lines)), w.r.IntN(len(s.Lines))
			s.Lines[i], s.Lines[j] = s.Lines[j], s.Lines[i]
		}
	}
	if w.r.IntN(3) == 0 {
		s.Lines = append(s.Lines, slices.Clone(s.Lines[:1+w.r.IntN(len(s.Lines))/2])...)
	}
}

// writer writes the lines of a data set.
type writer struct {
	r       *rand.Rand
	kind    Kind
	counter float64
}

func (w *writer) one(of ...string) string { return of[w.r.IntN(len(of))] }

// time returns the time of line i of n.
func (w *writer) time(i, n int) int64 {
	const second = int64(1e9)
	t := Begin + Span*int64(i)/int64(n)
	switch w.kind {
	case Ties:
		return t / (20 * second) * (20 * second)
	case Edges:
		return t/second*second + w.r.Int64N(3) - 1
	case Gaps:
		if i > n/3 && i < n*2/3 {
			t += Span
		}
		if i%5 != 0 {
			t = t/(60*second)*(60*second) + w.r.Int64N(5*second)
		}
		return t
	}
	switch w.r.IntN(4) {
	case 0:
		return t / second * second
	case 1:
		return t / 1e6 * 1e6
	}
	return t + w.r.Int64N(second)
}

// field is a name and a value; a number is written without quotes where the form knows the difference.
type field struct {
	name, value string
	number      bool
}

// fields returns the values of a line; each may be missing.
func (w *writer) fields() []field {
	w.counter += float64(w.r.IntN(20))
	if w.kind == Resets && w.r.IntN(8) == 0 {
		w.counter = float64(w.r.IntN(3))
	}
	all := []field{
		{"level", w.one("info", "warn", "error", "info"), false},
		{"status", w.one("200", "200", "404", "500"), true},
		{"method", w.one("GET", "POST"), false},
		{"path", w.one("/a", "/b", "/c/d"), false},
		{"dur", w.one("15ms", "1.5s", "2m", "250us", "1h2m3s"), false},
		{"size", w.one("1.5KB", "3MiB", "512", "1,024B", "7 kB"), false},
		{"n", strconv.FormatFloat(w.counter, 'f', -1, 64), true},
		{"f", w.number(), true},
		{"user", w.one("ann", "bob", "käin"), false},
		{"msg", w.one("all is well", "it failed", `said "no"`), false},
	}
	return slices.DeleteFunc(all, func(f field) bool {
		if f.name == "n" && w.kind == Resets {
			return false
		}
		return w.r.IntN(12) == 0
	})
}

// number returns a number as text, or, in some kinds of data sets, other text.
func (w *writer) number() string {
	switch w.kind {
	case Ties:
		return w.one("1", "2", "2", "3")
	case Extreme:
		return w.one("NaN", "Inf", "+Inf", "-Inf", "1e308", "1.7e308", "-1e308", "5e-324", "-5e-324", "1e-310", "-0", "0", "0.1",
			"1e16", "-1e16", "1", "9007199254740993", "1e-5", "0x1p-2")
	case Broken:
		if w.r.IntN(4) == 0 {
			return w.one("abc", "1e999", "1_0", "--1", "1.2.3")
		}
	}
	if w.r.IntN(2) == 0 {
		return strconv.FormatFloat(float64(w.r.IntN(40)-4)/4, 'f', -1, 64)
	}
	return strconv.FormatFloat(w.r.NormFloat64()*100, 'g', -1, 64)
}

// metadata returns structured metadata.
func (w *writer) metadata() []string {
	if w.kind == Metadata {
		var out []string
		for _, f := range w.fields() {
			if f.name != "msg" && f.name != "path" {
				out = append(out, f.name, f.value)
			}
		}
		return sortedPairs(append(out, "trace_id", w.one("t1", "t2", "t3")))
	}
	switch w.r.IntN(8) {
	case 0:
		return []string{"detected_level", w.one("info", "error", "unknown"), "trace_id", w.one("t1", "t2")}
	case 1: // its name is also that of a label of the stream
		return []string{"env", "meta", "trace_id", w.one("t1", "t2")}
	}
	return nil
}

func sortedPairs(pairs []string) []string {
	type pair struct{ name, value string }
	var all []pair
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, pair{pairs[i], pairs[i+1]})
	}
	slices.SortFunc(all, func(a, b pair) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	out := make([]string, 0, len(pairs))
	for _, p := range all {
		out = append(out, p.name, p.value)
	}
	return out
}
