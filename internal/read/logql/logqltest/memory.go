package logqltest

import (
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/readtest"
)

// Tenant is whose logs a data set in memory is.
const Tenant = "t"

// InMemory returns an engine over a data set, with small pages and chunks. The lines of a stream lie in
// several sources, whose chunks overlap if lines are late.
func InMemory(d *Dataset) *logql.Engine {
	const n = 3
	var sources []read.Source
	for i := range n {
		m := readtest.NewMemory(uint64(i + 1))
		for _, s := range d.Streams {
			l := model.LabelsOf(s.Labels...)
			for _, x := range s.Lines[len(s.Lines)*i/n : len(s.Lines)*(i+1)/n] {
				m.AddText(Tenant, l.Key(1, model.Logs), l, readtest.Line{Time: x.Time, Text: x.Text, Metadata: model.LabelsOf(x.Metadata...)})
			}
		}
		sources = append(sources, m)
	}
	return Over(sources...)
}

// Over returns an engine over sources.
func Over(sources ...read.Source) *logql.Engine {
	return logql.New(logql.Options{Read: read.New(read.Options{Sources: sources})})
}
