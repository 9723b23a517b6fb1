package linetest

import (
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// Run runs a case through package line: the leading filters over a page of this line alone, then the stages.
func Run(c Case) Outcome {
	q, err := syntax.ParseLog(c.Query)
	if err != nil {
		return Outcome{Error: err.Error()}
	}
	p, err := line.Compile(q.Stages)
	if err != nil {
		return Outcome{Error: err.Error()}
	}
	rows := model.TextRows{Times: []int64{c.At}, Bytes: []byte(c.Line), Ends: []uint32{uint32(len(c.Line))}}
	if f := p.Filter(); f != nil && len(f.Select(nil, &rows, 0, 1)) == 0 {
		return Outcome{}
	}
	r := p.Runner()
	r.SetStream(model.LabelsOf(c.Stream...))
	var out line.Result
	keep, err := r.Process(c.At, []byte(c.Line), model.LabelsOf(c.Metadata...), &out)
	if err != nil {
		return Outcome{Error: err.Error()}
	}
	if !keep {
		return Outcome{}
	}
	return Outcome{Keep: true, Line: string(out.Line), Stream: pairs(out.Stream), Metadata: pairs(out.Metadata), Parsed: pairs(out.Parsed)}
}

func pairs(l model.Labels) []string {
	var out []string
	for n, v, rest, ok := l.Next(); ok; n, v, rest, ok = rest.Next() {
		out = append(out, string(n), string(v))
	}
	return out
}
