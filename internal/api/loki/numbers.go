package loki

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/logql/vector"
)

// numbers are a result that consists of numbers.
type numbers struct {
	kind     logql.ResultKind
	times    []int64 // of the steps, in Unix milliseconds
	series   []vector.Series
	warnings []string
	stats    *logql.Stats
}

// evaluate evaluates a query for numbers.
func (h *Handler) evaluate(r *api.Request, p *logql.Prepared, steps vector.Steps, instant bool) (*api.Response, error) {
	got, err := h.o.Engine.Numbers(r.Context(), &logql.MetricQuery{
		Tenants: r.Tenants, Prepared: p, Steps: steps, Instant: instant,
		MaxSeries: h.o.Limits.MaxResultSeries, Partial: isDrilldown(r.Header), Quota: r.Quota, Cost: r.Cost,
	})
	if err != nil {
		return nil, err
	}
	n := &numbers{kind: got.Kind, warnings: got.Warnings, series: got.Matrix.Series, stats: &got.Stats}
	for i := range steps.Count {
		n.times = append(n.times, steps.Time(i)/int64(time.Millisecond))
	}
	return sendNumbers(r, n)
}

// isDrilldown reports whether a request comes from Grafana's Logs Drilldown, which takes a part of a result
// with a warning. Its tags are in the header X-Query-Tags: Source=grafana-lokiexplore-app,...
func isDrilldown(h http.Header) bool {
	for tag := range strings.SplitSeq(h.Get("X-Query-Tags"), ",") {
		name, value, _ := strings.Cut(tag, "=")
		if strings.EqualFold(name, "source") && strings.EqualFold(value, "grafana-lokiexplore-app") {
			return true
		}
	}
	return false
}

// sendNumbers responds with numbers, in the format that the client accepts.
func sendNumbers(r *api.Request, n *numbers) (*api.Response, error) {
	f := newFigures(r, n.stats)
	if wantsProtobuf(r) {
		return protobufNumbers(r, n, f)
	}
	return response(func(b *api.Body) { writeNumbers(b, n, f) }), nil
}

// kindNames are Loki's names.
var kindNames = [...]string{logql.ResultMatrix: "matrix", logql.ResultVector: "vector", logql.ResultScalar: "scalar"}

// writeNumbers writes a result of numbers.
func writeNumbers(b *api.Body, n *numbers, f *figures) {
	b.Raw(`{"status":"success","data":{"resultType":"`)
	b.Raw(kindNames[n.kind])
	b.Raw(`","result":`)
	if n.kind == logql.ResultScalar {
		writeSample(b, n, &n.series[0], 0)
	} else {
		b.Raw("[")
		for i := range n.series {
			if i > 0 {
				b.Raw(",")
			}
			writeSeries(b, n, &n.series[i])
		}
		b.Raw("]")
	}
	b.Raw(`,"stats":`)
	f.write(b)
	b.Raw("}")
	if warnings := append(n.warnings, b.Warnings()...); len(warnings) > 0 {
		b.Raw(`,"warnings":`)
		b.Texts(warnings)
	}
	b.Raw("}")
}

// writeSeries writes a series of a matrix, or of a vector with its one sample.
func writeSeries(b *api.Body, n *numbers, s *vector.Series) {
	b.Raw(`{"metric":`)
	writeLabels(b, s.Labels)
	matrix := n.kind == logql.ResultMatrix
	if matrix {
		b.Raw(`,"values":[`)
	} else {
		b.Raw(`,"value":`)
	}
	first := true
	for i := range n.times {
		if !s.Present.Has(i) {
			continue
		}
		if !first {
			b.Raw(",")
		}
		first = false
		writeSample(b, n, s, i)
		b.Spill()
	}
	if matrix {
		b.Raw("]")
	}
	b.Raw("}")
}

// writeSample writes a time in seconds and a value.
func writeSample(b *api.Body, n *numbers, s *vector.Series, i int) {
	b.Raw("[")
	b.Buf = strconv.AppendFloat(b.Buf, float64(n.times[i])/1000, 'f', -1, 64)
	b.Raw(`,"`)
	b.Buf = strconv.AppendFloat(b.Buf, s.Values[i], 'f', -1, 64)
	b.Raw(`"]`)
}
