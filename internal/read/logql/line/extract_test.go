package line_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
	"github.com/shaledb/shale/internal/read/logql/line/linetest"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// extractions are range aggregations whose samples an extractor takes.
var extractions = []string{
	`sum by (level) (count_over_time({app="web"} | json [1m]))`,
	`sum by (level, status) (count_over_time({app="web"} | json [1m]))`,
	`sum by (nested_b_c) (count_over_time({app="web"} | json [1m]))`,
	`sum by (a, app) (bytes_over_time({app="web"} | json [1m]))`,
	`sum by (a_b, x) (count_over_time({app="web"} | json | status >= 200 [1m]))`,
	`sum by (level) (count_over_time({app="web"} | json | __error__="" | a="x" or size > 1KB or dur < 1s [1m]))`,
	`quantile_over_time(0.9, {app="web"} | json | unwrap status [1m]) by (level)`,
	`sum by (level) (sum_over_time({app="web"} | json | unwrap duration(dur) | __error__="" | level!="warn" [1m]))`,
	`max_over_time({app="web"} | json | level="info" | unwrap bytes(size) [1m]) by (msg)`,
	`sum(sum_over_time({app="web"} | json | unwrap a [1m]))`,
	`sum by (level) (count_over_time({app="web"} | logfmt [1m]))`,
	`sum by (level, a, b) (count_over_time({app="web"} | logfmt [1m]))`,
	`sum by (app, status) (count_over_time({app="web"} | logfmt --strict [1m]))`,
	`sum by (msg) (bytes_rate({app="web"} | logfmt --keep-empty [1m]))`,
	`sum by (x) (count_over_time({app="web"} | logfmt --strict --keep-empty | n > 5 [1m]))`,
	`avg_over_time({app="web"} | logfmt | unwrap duration_seconds(dur) | __error__="" [1m]) by (path)`,
	`first_over_time({app="web"} | logfmt | status=~"2.." | unwrap n [1m]) by (level)`,
}

// runnerPair is a runner with an extractor and one that runs the stages on every line.
type runnerPair struct {
	query         string
	unwraps       bool
	pipeline      *line.Pipeline
	fast, slow    *line.Runner
	plain, unlike int
}

func newRunnerPairs(t testing.TB) (all []*runnerPair) {
	for _, text := range extractions {
		p := samplingOf(t, text)
		pair := &runnerPair{query: text, unwraps: strings.Contains(text, "unwrap"), pipeline: p, fast: p.Runner(), slow: p.Runner()}
		if !pair.fast.HasExtractor() {
			t.Fatalf("%s: no extractor", text)
		}
		pair.slow.DropExtractor()
		all = append(all, pair)
	}
	return all
}

func samplingOf(t testing.TB, text string) *line.Pipeline {
	e, err := syntax.Parse(text)
	if err != nil {
		t.Fatal(text, err)
	}
	var outer *syntax.Grouping
	if v, ok := e.(*syntax.VectorAggregation); ok {
		outer, e = &v.Grouping, v.Expr
	}
	r := e.(*syntax.RangeAggregation)
	if r.Grouping != nil {
		outer = r.Grouping
	}
	s := line.Sampling{Unwrap: r.Range.Unwrap, Labels: outer.Labels, Without: outer.Without, None: len(outer.Labels) == 0}
	p, err := line.CompileSampling(r.Range.Query.Stages, s)
	if err != nil {
		t.Fatal(text, err)
	}
	return p
}

func (p *runnerPair) setStream(l model.Labels) {
	p.fast.SetStream(l)
	p.slow.SetStream(l)
}

// check compares what both make of a line.
func (p *runnerPair) check(t testing.TB, text []byte, metadata model.Labels) {
	t.Helper()
	var got, want line.Sample
	wantKeep, wantErr := p.slow.Sample(1, text, metadata, &want)
	if _, known := p.fast.Extract(text, metadata, &got); known {
		p.plain++
	} else {
		p.unlike++
	}
	keep, err := p.fast.Sample(1, text, metadata, &got)
	if keep != wantKeep || (err == nil) != (wantErr == nil) {
		t.Fatalf("%s of %q with %s: %v, %v, want %v, %v", p.query, text, metadata, keep, err, wantKeep, wantErr)
	}
	if !keep {
		return
	}
	if math.Float64bits(got.Value) != math.Float64bits(want.Value) && p.unwraps && !got.Failed ||
		got.Bytes != want.Bytes || got.Failed != want.Failed || !bytes.Equal(got.Labels, want.Labels) {
		t.Fatalf("%s of %q with %s: %+v %s, want %+v %s", p.query, text, metadata, got, got.Labels, want, want.Labels)
	}
}

// streamsOfPairs are streams with and without labels that lines have, too.
var streamsOfPairs = []model.Labels{
	model.LabelsOf("app", "web", "env", "prod"),
	model.LabelsOf("app", "web", "level", "base"),
	model.LabelsOf("a", "x", "app", "web", "status", "9"),
}

var metadataOfPairs = []model.Labels{nil, model.LabelsOf("trace_id", "abc"), model.LabelsOf("level", "warn", "status", "1"), model.LabelsOf("__error__", "x")}

// plainLines are lines as programs write them.
var plainLines = []string{
	`{"ts":"2026-11-23T12:00:00.000Z","level":"info","msg":"request completed","a":1,"status":200,"dur":"15ms","size":"2KB","x":true}`,
	`{"level": "warn", "status": 404, "a": {"b": "c", "d": [1, {"e": "}"}]}, "nested": {"b": {"c": "deep"}}, "dur": "1s"}`,
	`{"level":"info","level":"twice","status":2e2,"x":null,"a.b":"dotted","a_b":"underscore","":"none"," ":"blank"}`,
	`{"level":"caf\u00e9","msg":"a \"quoted\" word","status":"200","a":"é","nested":{"b":{"c":"x"}}`,
	`{"level":"info","status":200,"a":"\\","x":"\\\"","nested":{}}, "trailing": 1`,
	`{"level":"info","status":200,}`, `{"level":"info"`, `{"level":"info" "status":200}`, `{"level":inf}`, `{}`, `[]`, ``, `plain text`,
	`level=info ts=2026-11-23T12:00:00Z msg="request completed" status=200 dur=15ms a=1 b="" n=7 path=/x`,
	`level=info msg="a \"quoted\" word" status=200 n=x dur=1 a==2 b="unterminated`,
	`level= status=200 lonely x="" é=1 =3 "quoted"=4 a=b=c n=9 level=late`,
	"level=\"info\"status=200\tx=\xff dur=7ms", `"__error__"=1 __error__=2 level=info`,
	`{"__error__":"x","level":"info","dur":"1ms","status":1}`,
}

// TestExtractor compares an extractor with the stages, on lines that are written down and on changed ones.
func TestExtractor(t *testing.T) {
	lines, changes := append(linetest.Lines(), plainLines...), 2000
	if testing.Short() {
		changes = 300
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, p := range newRunnerPairs(t) {
		for _, stream := range streamsOfPairs {
			p.setStream(stream)
			for _, metadata := range metadataOfPairs {
				for _, l := range lines {
					p.check(t, []byte(l), metadata)
				}
				for range changes {
					p.check(t, changed(r, lines[r.IntN(len(lines))]), metadata)
				}
			}
		}
		if p.plain < p.unlike/20 {
			t.Errorf("%s: %d lines are plain, %d are not", p.query, p.plain, p.unlike)
		}
	}
}

// changed returns a line with some bytes put in the place of others.
func changed(r *rand.Rand, line string) []byte {
	b := []byte(line)
	for range r.IntN(4) {
		if len(b) == 0 {
			break
		}
		i, j := r.IntN(len(b)), r.IntN(len(b))
		switch r.IntN(3) {
		case 0:
			b[i] = `"\{}[]:,= x1é`[r.IntN(14)]
		case 1:
			b = append(b[:i:i], b[min(len(b), i+1+r.IntN(3)):]...)
		default:
			b = append(append(b[:i:i], b[min(i, j):max(i, j)]...), b[i:]...)
		}
	}
	return b
}

// TestExtractorForgets the keys of lines that have too many.
func TestExtractorForgets(t *testing.T) {
	p := newRunnerPairs(t)[0]
	p.setStream(streamsOfPairs[0])
	for i := range 1500 {
		p.check(t, fmt.Appendf(nil, `{"key%d":1,"level":"info"}`, i), nil)
	}
	if n := p.fast.LineKeys(); n > 300 {
		t.Errorf("%d keys are kept", n)
	}
	if p.unlike > 10 {
		t.Errorf("%d lines ran through the stages", p.unlike)
	}
}

// FuzzExtractor compares an extractor with the stages on any two lines, the second after the first.
func FuzzExtractor(f *testing.F) {
	for i, l := range plainLines {
		f.Add([]byte(l), []byte(plainLines[(i+1)%len(plainLines)]))
	}
	pairs := newRunnerPairs(f)
	f.Fuzz(func(t *testing.T, a, b []byte) {
		for _, p := range pairs {
			p.fast = p.pipeline.Runner()
			for i, stream := range streamsOfPairs {
				p.setStream(stream)
				for _, l := range [][]byte{a, b, a} {
					p.check(t, l, metadataOfPairs[i])
				}
			}
		}
	})
}

// TestExtractorAllocates nothing.
func TestExtractorAllocates(t *testing.T) {
	for _, p := range newRunnerPairs(t) {
		p.setStream(streamsOfPairs[0])
		for _, l := range []string{plainLines[0], plainLines[13]} {
			text, metadata := []byte(l), metadataOfPairs[1]
			var out line.Sample
			alloctest.AtMost(t, 0, 100, func() { p.fast.Extract(text, metadata, &out) })
		}
	}
}

// FuzzNumber compares numbers with those of the library.
func FuzzNumber(f *testing.F) {
	for _, s := range []string{"0", "-0", "1.5", ".5", "5.", ".", "-", "", "-.", "1..2", "123456789012345", "1234567890123456", "0.00000000000001", "12.345", "1e5", "+1", "0x10", "1_0", "nan"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := line.Convert(s)
		want, wantErr := strconv.ParseFloat(s, 64)
		if math.Float64bits(got) != math.Float64bits(want) || (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v, %v, want %v, %v", s, got, err, want, wantErr)
		}
	})
}

// BenchmarkSample takes samples from a line, with an extractor and without.
func BenchmarkSample(b *testing.B) {
	const jsonLine = `{"ts":"2026-11-23T12:00:00.000Z","level":"info","component":"http.server","msg":"request completed","trace_id":"7e8d620c962ee13d7e8d620c962ee13d",` +
		`"span_id":"7e8d620c962ee13d","method":"GET","path":"/api/v2/products/51644","status":200,"user_id":100123,"duration_ms":12.345}`
	const logfmtLine = `ts=2026-11-23T12:00:00.000Z level=info caller=server.go:214 msg="request completed" traceID=7e8d620c962ee13d7e8d620c962ee13d status=200 attempt=1 bytes=51644 duration=12.345ms`
	for _, c := range []struct{ name, query, line string }{
		{"json-one", `sum by (path) (rate({app="web"} | json [5m]))`, jsonLine},
		{"json-unwrap", `quantile_over_time(0.99, {app="web"} | json | unwrap duration_ms [5m]) by (method)`, jsonLine},
		{"json-filter", `sum by (path) (rate({app="web"} | json | status >= 500 [5m]))`, jsonLine},
		{"logfmt-one", `sum by (status) (count_over_time({app="web"} | logfmt [1m]))`, logfmtLine},
		{"logfmt-stream", `sum by (app, status) (count_over_time({app="web"} | logfmt [1m]))`, logfmtLine},
	} {
		for _, how := range []string{"stages", "extractor"} {
			r := samplingOf(b, c.query).Runner()
			if how == "stages" {
				r.DropExtractor()
			}
			r.SetStream(streamsOfPairs[0])
			text, metadata := []byte(c.line), model.LabelsOf("detected_level", "info")
			b.Run(c.name+"/"+how, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				var out line.Sample
				for b.Loop() {
					if _, err := r.Sample(1, text, metadata, &out); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
