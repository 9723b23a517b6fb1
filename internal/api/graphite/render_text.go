package graphite

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// writeCSV writes a line for each value: name, time in the zone of the request, value.
func writeCSV(b *api.Body, r *rendering, list series.List) error {
	for _, s := range list {
		name := s.Name
		if strings.ContainsAny(name, ",\"\r\n") {
			name = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		}
		for i, v := range s.Values {
			b.Raw(name)
			b.Raw(",")
			b.Buf = time.Unix(s.Start+int64(i)*s.Step, 0).In(r.zone).AppendFormat(b.Buf, time.DateTime)
			b.Raw(",")
			if !series.IsNull(v) {
				b.Buf = series.AppendShortest(b.Buf, v)
			}
			b.Raw("\r\n")
			b.Spill()
		}
	}
	return nil
}

// writeRaw writes a line for each series: name,start,end,step|values.
func writeRaw(b *api.Body, _ *rendering, list series.List) error {
	for _, s := range list {
		b.Raw(s.Name)
		for _, n := range []int64{s.Start, s.End, s.Step} {
			b.Raw(",")
			b.Buf = strconv.AppendInt(b.Buf, n, 10)
		}
		b.Raw("|")
		for i, v := range s.Values {
			if i > 0 {
				b.Raw(",")
			}
			if series.IsNull(v) {
				b.Raw("None")
			} else {
				b.Buf = series.AppendShortest(b.Buf, v)
			}
			b.Spill()
		}
		b.Raw("\n")
	}
	return nil
}

// writeDygraph writes a table with a row for each time of the first series.
func writeDygraph(b *api.Body, r *rendering, list series.List) error {
	return withCallback(b, r, func() error {
		if len(list) == 0 {
			b.Raw("{}")
			return nil
		}
		b.Raw(`{"labels" : ["Time"`)
		for _, s := range list {
			b.Raw(", ")
			b.Str(s.Name)
		}
		b.Raw(`], "data" : [`)
		first := list[0]
		for i, at := 0, first.Start; at < first.End; i, at = i+1, at+first.Step {
			if i > 0 {
				b.Raw(", ")
			}
			b.Raw("[")
			b.Buf = strconv.AppendInt(b.Buf, at, 10)
			b.Raw("000")
			for _, s := range list {
				b.Raw(", ")
				v := series.Null()
				if i < len(s.Values) {
					v = s.Values[i]
				}
				switch {
				case math.IsInf(v, 1):
					b.Raw("Infinity")
				case math.IsInf(v, -1):
					b.Raw("-Infinity")
				default:
					b.Buf = appendNumber(b.Buf, v)
				}
			}
			b.Raw("]")
			b.Spill()
		}
		b.Raw("]}")
		return nil
	})
}

// writeRickshaw writes an object for each value.
func writeRickshaw(b *api.Body, r *rendering, list series.List) error {
	return withCallback(b, r, func() error {
		b.Raw("[")
		for i, s := range list {
			if i > 0 {
				b.Raw(", ")
			}
			b.Raw(`{"target": `)
			b.Str(s.Name)
			b.Raw(`, "datapoints": [`)
			at := s.Start
			for j, v := range s.Values {
				if at >= s.End {
					break
				}
				if j > 0 {
					b.Raw(", ")
				}
				b.Raw(`{"x": `)
				b.Buf = strconv.AppendInt(b.Buf, at, 10)
				b.Raw(`, "y": `)
				b.Buf = appendNumber(b.Buf, v)
				b.Raw("}")
				at += s.Step
				b.Spill()
			}
			b.Raw("]}")
		}
		b.Raw("]")
		return nil
	})
}
