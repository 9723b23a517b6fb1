package graphite

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
)

const (
	seed    model.KeySeed = 0x5ca1ab1e
	testNow int64         = 1_700_000_123_456_789_012
)

func newTestParser() *parser {
	p := &parser{now: func() int64 { return testNow }, maxLine: 16 << 10, reportBad: func([]byte, string) {}}
	p.keys.Seed, p.keys.Signal = seed, model.Metrics
	return p
}

// outcome is what becomes of one line.
type outcome struct {
	Labels string
	Key    model.Key
	Time   int64
	Value  uint64
	Counts counts
}

func parsed(line string) outcome {
	p, c := newTestParser(), new(chunk)
	if n := p.add([]byte(line), c); n != len(line) {
		panic(fmt.Sprintf("read %d of %d bytes", n, len(line)))
	}
	p.counts.lines = 0
	o := outcome{Counts: p.counts}
	if c.rows() == 1 {
		var lb model.LabelsBuilder
		c.BuildLabels(0, &lb)
		l, err := lb.Append(nil)
		if err != nil {
			panic(err)
		}
		o.Labels, o.Key, o.Time, o.Value = model.Labels(l).String(), c.keys[0], c.times[0], c.values[0]
	} else if c.rows() > 1 {
		panic("more than one row")
	}
	return o
}

var (
	wordForm   = regexp.MustCompile(`^(?i)[+-]?(inf|infinity|nan)$`)
	numberForm = regexp.MustCompile(`^[+-]?(\d+(_\d+)*(\.(\d+(_\d+)*)?)?|\.\d+(_\d+)*)([eE][+-]?\d+(_\d+)*)?$`)
)

func slowNumber(s string) (float64, bool) {
	s = strings.Map(func(r rune) rune {
		for _, zero := range pythonZeros {
			if r >= zero && r < zero+10 {
				return '0' + r - zero
			}
		}
		return r
	}, s)
	if !wordForm.MatchString(s) && !numberForm.MatchString(s) {
		return 0, false
	}
	if strings.HasSuffix(strings.ToLower(s), "nan") {
		return math.NaN(), true // with any sign, which strconv would refuse
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	return v, err == nil || math.IsInf(v, 0)
}

// pythonZeros has the zeros of all scripts but ASCII, as Python 3.11 lists them: `[hex(c) for c in
// range(0x110000) if chr(c).isdecimal() and unicodedata.decimal(chr(c)) == 0]`. The other nine digits
// follow each.
const pythonZeros = "\u0660\u06f0\u07c0\u0966\u09e6\u0a66\u0ae6\u0b66\u0be6\u0c66\u0ce6\u0d66\u0de6\u0e50\u0ed0\u0f20\u1040\u1090\u17e0\u1810\u1946\u19d0\u1a80\u1a90\u1b50\u1bb0\u1c40\u1c50\ua620\ua8d0\ua900\ua9d0\ua9f0\uaa50\uabf0\uff10\U000104a0\U00010d30\U00011066\U000110f0\U00011136\U000111d0\U000112f0\U00011450\U000114d0\U00011650\U000116c0\U00011730\U000118e0\U00011950\U00011c50\U00011d50\U00011da0\U00016a60\U00016ac0\U00016b50\U0001d7ce\U0001d7d8\U0001d7e2\U0001d7ec\U0001d7f6\U0001e140\U0001e2f0\U0001e950\U0001fbf0"

// pythonSpaces has the characters for which str.isspace is true, as `[hex(c) for c in range(0x110000) if
// chr(c).isspace()]` lists them.
const pythonSpaces = "\t\n\v\f\r\x1c\x1d\x1e\x1f \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"

// slowly does what parsed does, written for clarity alone.
func slowly(line string) outcome {
	bad := outcome{Counts: counts{bad: 1}}
	if !utf8.ValidString(line) {
		return bad
	}
	tokens := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(pythonSpaces, r) })
	if len(tokens) == 0 {
		return outcome{}
	}
	if len(tokens) != 3 {
		return bad
	}
	v, ok := slowNumber(tokens[1])
	seconds, ok2 := slowNumber(tokens[2])
	if !ok || !ok2 || math.IsNaN(seconds) || math.IsInf(seconds, 0) {
		return bad
	}
	if math.IsNaN(v) {
		return outcome{Counts: counts{nan: 1}}
	}
	seconds = math.Trunc(seconds)
	if math.Abs(seconds) > math.MaxInt64/1_000_000_000 {
		return outcome{Counts: counts{badTime: 1}}
	}
	t := int64(seconds) * 1_000_000_000
	if seconds == -1 {
		t = testNow - testNow%1_000_000_000
	}
	l, ok := slowLabels(tokens[0])
	if !ok {
		return bad
	}
	return outcome{Labels: l.String(), Key: l.Key(seed, model.Metrics), Time: t, Value: math.Float64bits(v)}
}

// slowLabels returns the labels of a path, or the path as a name if it is malformed.
func slowLabels(path string) (l model.Labels, ok bool) {
	labels, name, ok := slowTags(path)
	if !ok {
		return model.LabelsOf("__name__", path), path != ""
	}
	if len(labels) > maxTags {
		return nil, false
	}
	pairs := []string{"__name__", name}
	for tag, value := range labels {
		pairs = append(pairs, tag, value)
	}
	return model.LabelsOf(pairs...), true
}

// openMetricsTag is the expression that carbon uses, with \z for Python's $ at the end of a path without
// white space.
var openMetricsTag = regexp.MustCompile(`^([^=]+)="((?:[\\]["\\]|[^"\\])+)"(:?,|\z)`)

func slowTags(path string) (labels map[string]string, name string, ok bool) {
	labels = map[string]string{}
	set := func(tag, value string) bool {
		if tag == "" || value == "" || strings.ContainsAny(tag, ";!^=") || strings.Contains(value, ";") || strings.HasPrefix(value, "~") || tag == "__name__" {
			return false
		}
		if tag != "name" {
			labels[tag] = value
		}
		return true
	}
	metric, rest := path, ""
	if strings.HasSuffix(path, `"}`) && strings.Contains(path, "{") {
		metric, rest, _ = strings.Cut(path[:len(path)-1], "{")
	}
	parts := strings.Split(metric, ";")
	name = strings.TrimLeft(parts[0], "~")
	if name == "" || strings.Contains(rest, "{") {
		return nil, "", false
	}
	for _, part := range parts[1:] {
		tag, value, ok := strings.Cut(part, "=")
		if !ok || !set(tag, value) {
			return nil, "", false
		}
	}
	for rest != "" {
		m := openMetricsTag.FindStringSubmatch(rest)
		if m == nil || !set(m[1], strings.ReplaceAll(strings.ReplaceAll(m[2], `\"`, `"`), `\\`, `\`)) {
			return nil, "", false
		}
		rest = rest[len(m[0]):]
	}
	return labels, name, true
}

// lines are seeds of the fuzz target and cases of the comparison with the slow parser.
var lines = []string{
	"servers.web1.cpu.idle 97.5 1700000000", "a 1 1", "a 1 1\r", "a.b.c -0 0", "a..b .5 7", ".a 5. 7", "a +1.25 +7", "a\t1\v1", "a 1\u00a01700000000",
	"\u3000a\u2003 1 \x1c1 ", "ä.ö 1 1", "a\x00b 1 1", "a\x7f 1 1", "a 9007199254740991 1", "a 9007199254740993 1", "a 0.1 1", "a 123456.789012 1", "a 0.3000000000000000166 1",
	"a 1e3 1", "a 1e400 1", "a -1e400 1", "a 1e-400 1", "a inf 1", "a -Infinity 1", "a nan 1", "a NaN 1", "a +nan 1", "a -NAN 1", "a 1 -nan", "a 1_000.5_5e1_0 1", "a 1__0 1", "a _1 1", "a 1_ 1", "a 1_.5 1", "a 1._5 1",
	"a 0x10 1", "a 1e 1", "a . 1", "a + 1", "a - 1", "a 1 -1", "a 1 -1.5", "a 1 -0.5", "a 1 -2", "a 1 1700000000.999", "a 1 1.7e9", "a 1 1700000000000", "a 1 9223372036", "a 1 9223372037",
	"a 1 99999999999", "a 1 nan", "a 1 inf", "a 1 0x5", "a 1", "a", "", "  ", "a 1 1 1", "a b 1", "~a 1 1", "~~ 1 1", "~ 1 1",
	"a.b;dc=x;host=y 1 1", "a;dc=x;dc=y 1 1", "a;z=1;b=2 1 1", "a;dc= 1 1", "a;=x 1 1", "a;dc 1 1", "a; 1 1", ";dc=x 1 1", "a;name=b 1 1", "a;name= 1 1", "a;__name__=b 1 1", "a;d!=x 1 1",
	"a;d^c=x 1 1", "a;dc=~x 1 1", "a;dc=x=y 1 1", "a;dc=x! 1 1", "a;job=j;instance=i 1 1", "a\xff 1 1", "a 1\xff 1", "a 00000000000000000000001 1", "a 1 00000000000000000001", "a 18446744073709551617 1",
	`m{a="b"} 1 1`, `m{a="b",c="d"} 1 1`, `m{a="b":,c="d"} 1 1`, `m{a="b",} 1 1`, `m{a="b"}x 1 1`, `m{a=""} 1 1`, `m{a="\\"} 1 1`, `m{a="\""} 1 1`, `m{a="x\"y\\z"} 1 1`, `m{a="\n"} 1 1`,
	`m{a="b"c="d"} 1 1`, `m{="b"} 1 1`, `m{a=b"} 1 1`, `{a="b"} 1 1`, `~m{a="b"} 1 1`, `m{a="{"} 1 1`, `m{a="}"} 1 1`, `m{a="b,c=d"} 1 1`, `m{a="~b"} 1 1`, `m{a!="b"} 1 1`, `m{a=="b"} 1 1`,
	`m{a;b="c"} 1 1`, `m{a="b;c"} 1 1`, `m;x=y{a="b"} 1 1`, `m;x{a="b"} 1 1`, `m{name="x"} 1 1`, `m{__name__="x"} 1 1`, `m{a="b",a="c"} 1 1`, `m{} 1 1`, `m} 1 1`, `m{a="b",,c="d"} 1 1`, `m{a="é"} 1 1`, `"} 1 1`, `{"} 1 1`,
	"a \u0661\u0662.\u0663 1", "a 1 \u0967\u0966", "a \U0001d7ce\U0001d7d9\U0001d7ff 1", "a 1\u0660_1e\u0661 1", "a \u00b2 1", "a \u2160 1", "a \u0661x 1", "a -\uff11 1",
	"abcdefg;h=1 1 1", "abcdefgh 1 1", "abcdefghijklmno;p=1 2 3", "abcdefghijklmnopq\u00e9 2 3",
}

func TestLinesAgreeWithTheSlowReading(t *testing.T) {
	for _, line := range lines {
		if diff := cmp.Diff(slowly(line), parsed(line), cmpopts.EquateComparable(counts{})); diff != "" {
			t.Errorf("%q: -slow +fast\n%s", line, diff)
		}
	}
}

// TestLinesByHand compares the slow parser itself with the behaviour of carbon and graphite-web.
func TestLinesByHand(t *testing.T) {
	const s = 1_000_000_000
	one := math.Float64bits(1)
	for line, want := range map[string]outcome{
		"a.b 1.5 60":               {Labels: `{__name__="a.b"}`, Time: 60 * s, Value: math.Float64bits(1.5)},
		"a.b;dc=x;host=y -1e2 60":  {Labels: `{__name__="a.b", dc="x", host="y"}`, Time: 60 * s, Value: math.Float64bits(-100)},
		"a;dc=x;dc=y 1 60.99":      {Labels: `{__name__="a", dc="y"}`, Time: 60 * s, Value: math.Float64bits(1)},
		"a;name=other 1_0 6e1":     {Labels: `{__name__="a"}`, Time: 60 * s, Value: math.Float64bits(10)},
		"~a -0 -1":                 {Labels: `{__name__="a"}`, Time: 1_700_000_123 * s, Value: 1 << 63},
		"a -inf -60":               {Labels: `{__name__="a"}`, Time: -60 * s, Value: math.Float64bits(math.Inf(-1))},
		"a -nan 60":                {Counts: counts{nan: 1}},
		"a nan 60":                 {Counts: counts{nan: 1}},
		"a 1 1700000000000":        {Counts: counts{badTime: 1}},
		"a 1":                      {Counts: counts{bad: 1}},
		"a;x= 1 60":                {Labels: `{__name__="a;x="}`, Time: 60 * s, Value: one},
		"a;__name__=b 1 60":        {Labels: `{__name__="a;__name__=b"}`, Time: 60 * s, Value: one},
		"~~ 1 60":                  {Labels: `{__name__="~~"}`, Time: 60 * s, Value: one},
		`m{a="b"} 1 60`:            {Labels: `{__name__="m", a="b"}`, Time: 60 * s, Value: one},
		`m{b="2",a="1"} 1 60`:      {Labels: `{__name__="m", a="1", b="2"}`, Time: 60 * s, Value: one},
		`m{a="x=\"y\\z"} 1 60`:     {Labels: `{__name__="m", a="x=\"y\\z"}`, Time: 60 * s, Value: one},
		`m;c=3{a="1"} 1 60`:        {Labels: `{__name__="m", a="1", c="3"}`, Time: 60 * s, Value: one},
		`m{a="1":,name="2"} 1 60`:  {Labels: `{__name__="m", a="1"}`, Time: 60 * s, Value: one},
		`m{a=""} 1 60`:             {Labels: `{__name__="m{a=\"\"}"}`, Time: 60 * s, Value: one},
		`m{a="{"} 1 60`:            {Labels: `{__name__="m{a=\"{\"}"}`, Time: 60 * s, Value: one},
		`m{a="\n"} 1 60`:           {Labels: `{__name__="m{a=\"\\n\"}"}`, Time: 60 * s, Value: one},
		`m{a="b",} 1 60`:           {Labels: `{__name__="m{a=\"b\",}"}`, Time: 60 * s, Value: one},
		`{a="b"} 1 60`:             {Labels: `{__name__="{a=\"b\"}"}`, Time: 60 * s, Value: one},
		"m{} 1 60":                 {Labels: `{__name__="m{}"}`, Time: 60 * s, Value: one},
		"a \u0661 \uff16\u0e50":    {Labels: `{__name__="a"}`, Time: 60 * s, Value: one},
		"a \u00b2 60":              {Counts: counts{bad: 1}}, // a superscript is not a decimal digit
		"GET / HTTP/1.1":           {Counts: counts{bad: 1}},
		strings.Repeat("x", 16385): {Counts: counts{bad: 1}},
		"a" + tags(1025) + " 1 60": {Counts: counts{bad: 1}},
		"":                         {},
	} {
		got := parsed(line)
		got.Key = model.Key{}
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(counts{})); diff != "" {
			t.Errorf("%.100q: -want +got\n%s", line, diff)
		}
	}
}

func tags(n int) string {
	var sb strings.Builder
	for i := range n {
		fmt.Fprintf(&sb, ";t%d=v", i)
	}
	return sb.String()
}

func TestPlainNumbersAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s string
		switch rapid.IntRange(0, 2).Draw(t, "form") {
		case 0:
			s = strconv.FormatFloat(rapid.Float64().Draw(t, "v"), 'f', rapid.IntRange(-1, 20).Draw(t, "decimals"), 64)
		case 1:
			s = strconv.FormatInt(rapid.Int64().Draw(t, "v")>>rapid.IntRange(0, 63).Draw(t, "shift"), 10)
		default:
			s = rapid.StringMatching(`[+-]?[0-9]{0,12}\.?[0-9]{0,12}`).Draw(t, "s")
		}
		got, end, ok := plainNumber([]byte(s))
		if !ok {
			return
		}
		want, err := strconv.ParseFloat(s, 64)
		if err != nil || end != len(s) || math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("%s: %v of %d bytes, want %v (%v)", s, got, end, want, err)
		}
	})
	usual := 0
	for i := range 100_000 {
		s := strconv.FormatFloat(float64(i)/1000, 'f', -1, 64)
		if v, _, ok := plainNumber([]byte(s)); ok && v == float64(i)/1000 {
			usual++
		}
	}
	if usual != 100_000 {
		t.Fatalf("%d of 100000 usual numbers are plain", usual)
	}
}

func TestSpacesAreThoseOfPython(t *testing.T) {
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if want := strings.ContainsRune(pythonSpaces, r) && r != utf8.RuneError; isSpace(r) != want {
			t.Errorf("%U: %v", r, isSpace(r))
		}
	}
}

func TestPlainEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.OneOf(rapid.ByteRange(0x21, 0x7e), rapid.Byte()), 0, 40).Draw(t, "b")
		want := 0
		for want < len(b) && b[want] > ' ' && b[want] < 0x80 && b[want] != ';' {
			want++
		}
		if got := plainEnd(b); got != want {
			t.Fatalf("%q: %d, want %d", b, got, want)
		}
	})
}

func TestManyLinesInOne(t *testing.T) {
	p, c := newTestParser(), new(chunk)
	text := "a 1 1\n\n \nb 2 2\r\nbad\nc;x=y 3 3\nd nan 4\ne 5 5"
	if n := p.add([]byte(text), c); n != len(text) || c.rows() != 4 || p.counts != (counts{lines: 6, bad: 1, nan: 1}) {
		t.Fatalf("read %d bytes to %d rows, %+v", n, c.rows(), p.counts)
	}
}

// A datagram ends its lines where Python's str.splitlines does, and TCP at newlines alone.
func TestLineBreaks(t *testing.T) {
	const pythonBreaks = "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029"
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if want := strings.ContainsRune(pythonBreaks, r) && r != utf8.RuneError; isLineBreak(r) != want {
			t.Errorf("%U: %v", r, isLineBreak(r))
		}
	}
	for _, r := range pythonBreaks {
		text := fmt.Sprintf("a 1 1%cb 2 2%c%[1]cbad\xff%[1]cc;x=y 3 3%[1]c", r, r)
		for datagram, want := range map[bool]counts{true: {lines: 4, bad: 1}, false: {lines: 1, bad: 1}} {
			p, c := newTestParser(), new(chunk)
			p.datagram = datagram
			if r == '\n' {
				want = counts{lines: 4, bad: 1}
			}
			if n := p.add([]byte(text), c); n != len(text) || p.counts != want || c.rows() != want.lines-1 {
				t.Errorf("%q, datagram %v: read %d bytes to %d rows, %+v", text, datagram, n, c.rows(), p.counts)
			}
		}
	}
	p, c := newTestParser(), new(chunk)
	p.datagram = true
	text := strings.Repeat("a 1 1\r", 3000) + strings.Repeat("x", 16<<10+1) + " 1 1"
	if p.add([]byte(text), c); c.rows() != 3000 || p.counts != (counts{lines: 3001, bad: 1}) {
		t.Errorf("%d rows, %+v", c.rows(), p.counts)
	}
	if n := countDatagramLines([]byte(text)); n != 3001 {
		t.Errorf("%d lines are counted", n)
	}
}

func FuzzLine(f *testing.F) {
	for _, line := range lines {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		line, _, _ = strings.Cut(line, "\n")
		if len(line) > 16<<10 {
			return
		}
		if diff := cmp.Diff(slowly(line), parsed(line), cmpopts.EquateComparable(counts{})); diff != "" {
			t.Fatalf("%q: -slow +fast\n%s", line, diff)
		}
	})
}

// block is a piece of a stream of n lines as an agent with many metrics sends them.
func block(n int) []byte {
	var sb strings.Builder
	for i := range n {
		fmt.Fprintf(&sb, "haggar.agent.%d.metrics.%d %d %d\n", i/10_000, i%10_000, i*7919%1000, 1_700_000_000)
	}
	return []byte(sb.String())
}

func TestParsingAllocatesNothing(t *testing.T) {
	for name, text := range map[string][]byte{
		"plain":  block(1000),
		"tagged": []byte(strings.Repeat("disk.used;host=web1;dc=eu 1.5 1700000000\n", 1000)),
		"odd":    []byte(strings.Repeat("disk.used  1e5 1700000000.5\nx 1_0 -1\nx nan 1\nx inf 1\nbad\n", 200)),
	} {
		p, c := newTestParser(), new(chunk)
		alloctest.AtMost(t, 0, 10, func() {
			c.reset()
			p.add(text, c)
		})
		if c.rows() == 0 {
			t.Errorf("%s: no rows", name)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	const n = 10_000
	for name, text := range map[string][]byte{"plain": block(n), "tagged": []byte(strings.Repeat("disk.used;host=web1;dc=eu 1.5 1700000000\n", n))} {
		b.Run(name, func(b *testing.B) {
			p, c := newTestParser(), new(chunk)
			b.ReportAllocs()
			for b.Loop() {
				c.reset()
				p.add(text, c)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/line")
			b.ReportMetric(float64(len(text))/n, "bytes/line")
		})
	}
}
