package line

import (
	"flag"
	"fmt"
	"hash/fnv"
	"reflect"
	"testing"

	"github.com/prometheus/prometheus/model/labels"

	loki "github.com/grafana/loki/v3/pkg/logql/syntax"

	"github.com/shaledb/shale/internal/read/logql/line/linetest"
)

const golden = "../../../internal/read/logql/line/testdata/loki.golden"

var (
	record = flag.Bool("record", false, "write Loki's answers anew")
	count  = flag.Int("n", 50000, "random cases")
	seed   = flag.Uint64("seed", 1, "of the random cases")
	show   = flag.Int("show", 30, "differences that are printed")
)

// lokiSays runs a case with Loki. Loki's pipelines remember the labels of lines, so each case gets its own.
func lokiSays(c linetest.Case) (out linetest.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			out = linetest.Outcome{Error: fmt.Sprint("panic: ", p)}
		}
	}()
	e, err := loki.ParseLogSelector(c.Query, true)
	if err != nil {
		return linetest.Outcome{Error: err.Error()}
	}
	p, err := e.Pipeline()
	if err != nil {
		return linetest.Outcome{Error: err.Error()}
	}
	line, l, keep := p.ForStream(labels.FromStrings(c.Stream...)).Process(c.At, []byte(c.Line), labels.FromStrings(c.Metadata...))
	if !keep {
		return linetest.Outcome{}
	}
	return linetest.Outcome{Keep: true, Line: string(line), Stream: pairs(l.Stream()), Metadata: pairs(l.StructuredMetadata()), Parsed: pairs(l.Parsed())}
}

func pairs(l labels.Labels) []string {
	var out []string
	l.Range(func(x labels.Label) { out = append(out, x.Name, x.Value) })
	return out
}

type judge struct {
	t       *testing.T
	right   int
	reasons map[string]int
	wrong   int
	seen    map[string]bool
}

func (j *judge) ask(c linetest.Case) (them linetest.Outcome, why string) {
	them = lokiSays(c)
	us := linetest.Run(c)
	if reflect.DeepEqual(them, us) {
		j.right++
		return them, ""
	}
	if why = linetest.Known(c, them, us, lokiSays); why != "" {
		j.reasons[why]++
		return them, why
	}
	j.wrong++
	if !j.seen[c.Query] && len(j.seen) < *show {
		j.t.Errorf("%s\nline %q\nstream %q metadata %q\nloki %s\nwe   %s", c.Query, c.Line, c.Stream, c.Metadata, text(them), text(us))
	}
	j.seen[c.Query] = true
	return them, ""
}

func (j *judge) report() {
	j.t.Logf("%d the same, %d wrong", j.right, j.wrong)
	for why, n := range j.reasons {
		j.t.Logf("%d: %s", n, why)
	}
	if j.wrong > 0 {
		j.t.Errorf("%d of %d cases are wrong, of %d queries", j.wrong, j.right+j.wrong, len(j.seen))
	}
}

func newJudge(t *testing.T) *judge {
	return &judge{t: t, reasons: map[string]int{}, seen: map[string]bool{}}
}

func TestWritten(t *testing.T) {
	j := newJudge(t)
	var kept []linetest.Record
	perQuery := map[string]int{}
	for _, c := range linetest.Written() {
		them, why := j.ask(c)
		// Only some cases of each query are recorded. Dropped lines are all alike, so kept lines are preferred.
		h := fnv.New32a()
		fmt.Fprint(h, c)
		if n := h.Sum32() % 64; them.Error == "" && (n < 1 || them.Keep && n < 5) && perQuery[c.Query] < 5 || them.Error != "" && perQuery[c.Query] == 0 {
			perQuery[c.Query]++
			kept = append(kept, linetest.Record{Case: c, Out: them, Why: why})
		}
	}
	j.report()
	if *record {
		if err := linetest.Write(golden, kept); err != nil {
			t.Fatal(err)
		}
	}
	have, err := linetest.Read(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(have, kept) {
		t.Errorf("%s is not what Loki says: run with -record", golden)
	}
}

func TestRandom(t *testing.T) {
	j := newJudge(t)
	g := linetest.NewGenerator(*seed)
	for range *count {
		j.ask(g.Case())
	}
	j.report()
}

// TestPaths asks for random paths of json and logfmt, most of them wrong.
func TestPaths(t *testing.T) {
	j := newJudge(t)
	g := linetest.NewGenerator(*seed)
	for range *count {
		j.ask(g.PathCase())
	}
	j.report()
}

// text returns the printed form of an outcome.
func text(o linetest.Outcome) string {
	return fmt.Sprintf("error %q keep %v line %q stream %q metadata %q parsed %q", o.Error, o.Keep, o.Line, o.Stream, o.Metadata, o.Parsed)
}
