package api

import (
	"net/http"

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
	c.r.Request = c.r.WithContext(c.client)
}
