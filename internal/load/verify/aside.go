package verify

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"strconv"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/load/fleet"
)

// The data of a load besides samples: exemplars, and the metadata of metrics.

// exemplarsOf are the exemplars of one series in the API.
type exemplarsOf struct {
	Series    map[string]string `json:"seriesLabels"`
	Exemplars []struct {
		Labels map[string]string `json:"labels"`
		At     float64           `json:"timestamp"`
		Value  string            `json:"value"`
	} `json:"exemplars"`
}

// exemplars compares the exemplars of a stretch.
func (c *checker) exemplars(ctx context.Context, s *stretch, from, to int64) {
	o, ok := c.from.(*fleetOrigin)
	if !ok {
		return
	}
	form := url.Values{"query": {s.selector}, "start": {client.Seconds(from)}, "end": {client.Seconds(to)}}
	var all []exemplarsOf
	if c.ask(func() error {
		return c.server(s.g).API(ctx, http.MethodPost, "query_exemplars", form, &all)
	}) != nil {
		return
	}
	type found struct{ trace, value string }
	got := map[int64]found{}
	for _, series := range all {
		for _, e := range series.Exemplars {
			got[int64(e.At*1000+0.5)] = found{e.Labels[fleet.TraceLabel], e.Value}
		}
	}
	for round := s.first; round < s.end; round++ {
		ms := o.ms(s.g, round)
		trace, bits, has := o.exemplarOf(s.g, round)
		e, there := got[ms]
		delete(got, ms)
		known := o.certainty(s.g, round)
		switch value, err := strconv.ParseFloat(e.value, 64); {
		case there && (!has || known == never):
			c.note(&c.out.Extra, 1, "%s: exemplar %v at %d ms, which was not sent", s.selector, e, ms)
		case !there && has && known == surely:
			c.note(&c.out.Missing, 1, "%s: exemplar of round %d at %d ms is missing", s.selector, round, ms)
		case there && (e.trace != trace || err != nil || bits != math.Float64bits(value)):
			c.note(&c.out.Wrong, 1, "%s: at %d ms exemplar %v, want trace %s and %s", s.selector, ms, e, trace, differentBits(math.Float64bits(value), bits))
		case there:
			c.add(&c.out.Exemplars, 1)
		}
	}
	for ms, e := range got {
		c.note(&c.out.Extra, 1, "%s: exemplar %v at %d ms, which is not a time of the load", s.selector, e, ms)
	}
}

// exemplarOf returns the exemplar of a sample, if it has one.
func (o *fleetOrigin) exemplarOf(g int64, round int) (trace string, bits uint64, ok bool) {
	place := o.Place(g)
	m := o.Course.Moment(place.Target, o.Scrape(place), round)
	p := fleet.Point{Place: place, G: g, Identity: o.Identity(place), Moment: &m}
	var id [fleet.TraceBytes]byte
	if !o.Exemplar(&p, &id) {
		return "", 0, false
	}
	return string(id[:]), p.Bits(o.Value), true
}

// metricOf is a metric of a tenant.
type metricOf struct{ tenant, metric int }

// metadata compares the server's metadata for the metric of a series, once for each metric and tenant.
func (c *checker) metadata(ctx context.Context, g int64) {
	f := c.State.RemoteWrite
	at := f.Place(g)
	which := metricOf{at.Tenant, at.Metric}
	c.mu.Lock()
	done := c.told[which]
	if c.told == nil {
		c.told = map[metricOf]bool{}
	}
	c.told[which] = true
	c.mu.Unlock()
	if done {
		return
	}
	type told struct {
		Type string `json:"type"`
		Help string `json:"help"`
		Unit string `json:"unit"`
	}
	name, all := f.MetricName(at.Metric), map[string][]told{}
	if c.ask(func() error {
		return c.server(g).API(ctx, http.MethodGet, "metadata", url.Values{"metric": {name}}, &all)
	}) != nil {
		return
	}
	want := told{f.TypeName(at.Metric), string(f.AppendHelp(nil, at.Metric)), f.Unit()}
	if len(all[name]) != 1 || all[name][0] != want {
		c.note(&c.out.Wrong, 1, "metadata of %s: %v, want %v", name, all[name], want)
		return
	}
	c.add(&c.out.Metadata, 1)
}
