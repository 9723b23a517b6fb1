package logqltest

import (
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/readtest"
)

// Tenant is whose logs a data set in memory is.
const Tenant = "t"

// InMemory returns an engine over a data set, with small pages and chunks.
func InMemory(d *Dataset) *logql.Engine {
	m := readtest.NewMemory(1)
	for _, s := range d.Streams {
		l := model.LabelsOf(s.Labels...)
		for _, x := range s.Lines {
			m.AddText(Tenant, l.Key(1, model.Logs), l, readtest.Line{Time: x.Time, Text: x.Text, Metadata: model.LabelsOf(x.Metadata...)})
		}
	}
	return logql.New(logql.Options{Read: read.New(read.Options{Sources: []read.Source{m}})})
}
