package metric

import (
	"context"
	"slices"

	"github.com/shaledb/shale/internal/read/logql/logqltest"
)

// shrink returns the query with fewer streams, lines, metadata and steps that still make a difference, and
// our result. Lines lie in memory, so a difference of the store alone does not shrink.
func shrink(a *asked, us *logqltest.Result) (*asked, *logqltest.Result) {
	try := func(d *logqltest.Dataset, q logqltest.Query) bool {
		s, err := newStore(d)
		if err != nil {
			return false
		}
		b := &asked{data: d, loki: s, query: q, them: s.run(&q)}
		r := logqltest.Run(context.Background(), logqltest.InMemory(d), logqltest.Tenant, &q)
		if diff(b, r) == "" || known(b, r) != "" || (b.them.Error == "") != (a.them.Error == "") || (r.Error == "") != (us.Error == "") {
			return false
		}
		a, us = b, r
		return true
	}
	if !try(a.data, a.query) {
		return a, us
	}
	if !a.query.Instant() && a.query.Limit == 0 {
		for t := a.query.Start; t <= a.query.End; t += a.query.Step {
			q := a.query
			if q.Start, q.End = t, t; try(a.data, q) {
				break
			}
		}
	}
	for i := len(a.data.Streams) - 1; i >= 0; i-- {
		d := *a.data
		d.Streams = slices.Delete(slices.Clone(d.Streams), i, i+1)
		try(&d, a.query)
	}
	for i := range a.data.Streams {
		for size := len(a.data.Streams[i].Lines) / 2; size > 0; size /= 2 {
			for j := 0; j+size <= len(a.data.Streams[i].Lines); {
				d := *a.data
				d.Streams = slices.Clone(d.Streams)
				d.Streams[i].Lines = slices.Delete(slices.Clone(d.Streams[i].Lines), j, j+size)
				if !try(&d, a.query) {
					j += size
				}
			}
		}
		for j := range a.data.Streams[i].Lines {
			d := *a.data
			d.Streams = slices.Clone(d.Streams)
			d.Streams[i].Lines = slices.Clone(d.Streams[i].Lines)
			d.Streams[i].Lines[j].Metadata = nil
			try(&d, a.query)
		}
	}
	return a, us
}
