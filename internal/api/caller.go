package api

import (
	"net/http"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// classOf returns what a query is for. Grafana says so in headers: X-Rule-Uid or FromAlert for its alert
// rules, and X-Dashboard-Uid for panels. A client that claims a higher class takes it from its own tenant.
func classOf(e *Endpoint, h http.Header) model.Class {
	switch {
	case e.Needs&Content != 0: // remote read sends all rows of its series
		return model.Scan
	case h.Get("X-Rule-Uid") != "" || h.Get("FromAlert") == "true":
		return model.Rule
	case h.Get("X-Dashboard-Uid") != "":
		return model.Dashboard
	}
	return model.Explore
}

// identify tells the requests to the bucket for whom they are. Those of a query over several tenants are
// counted for the first.
func (c *call) identify() {
	caller := model.Caller{Class: classOf(c.e, c.r.Header)}
	if len(c.r.Tenants) > 0 {
		caller.Tenant = c.r.Tenants[0]
	}
	c.client = model.WithCaller(c.client, caller)
	c.r.Quota.Tenant = caller.Tenant
	c.limit()
	c.r.Request = c.r.WithContext(c.client)
}

// mostQueries returns how many queries the first tenant of the request, for which it counts, may have at one
// time: the least limit of all its tenants. 0: no limit.
func (c *call) mostQueries() (most int) {
	if c.o.LimitsOf == nil || len(c.r.Tenants) == 0 {
		return c.o.Limits.MaxOfTenant
	}
	for _, tenant := range c.r.Tenants {
		if n := c.o.LimitsOf(tenant).MaxOfTenant; n > 0 && (most == 0 || n < most) {
			most = n
		}
	}
	return most
}

// limit applies the limits of the tenants of the request: the least of each.
func (c *call) limit() {
	if c.o.LimitsOf == nil {
		return
	}
	for i, tenant := range c.r.Tenants {
		l, q := c.o.LimitsOf(tenant), c.r.Quota
		if i == 0 {
			c.timeout, q.MaxSeries, q.MaxSamples, q.MaxBytes, q.MaxRange = l.Timeout, l.MaxSeries, l.MaxSamples, l.MaxBytes, l.MaxRange
			continue
		}
		c.timeout = min(c.timeout, l.Timeout)
		q.MaxSeries, q.MaxSamples, q.MaxBytes = lower(q.MaxSeries, l.MaxSeries), lower(q.MaxSamples, l.MaxSamples), lower(q.MaxBytes, l.MaxBytes)
		if lowest := lower(q.MaxRange, l.MaxRange); lowest != q.MaxRange {
			q.MaxRange, q.RangeTenant = lowest, tenant
		}
	}
}

// lower returns the lower of two limits; 0 means no limit.
func lower[N int64 | time.Duration](a, b N) N {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
