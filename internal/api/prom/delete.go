package prom

import (
	"errors"
	"net/http"
	"time"

	"github.com/shaledb/shale/internal/api"
)

// The endpoints that change data, and their methods.
const (
	deleteSeries    = "admin/tsdb/delete_series"
	cleanTombstones = "admin/tsdb/clean_tombstones"
	changes         = "POST, PUT"
)

// deleteSeries deletes the samples and exemplars of the series that match any of the selectors.
func (h *Handler) deleteSeries(r *api.Request) (*api.Response, error) {
	if h.o.Delete == nil {
		return nil, unavailable("admin APIs disabled")
	}
	if len(r.Form["match[]"]) == 0 {
		return nil, badData("no match[] parameter provided")
	}
	start, bad := timeParam(r.Form, "start", minTime)
	if bad != nil {
		return nil, bad
	}
	end, bad := timeParam(r.Form, "end", maxTime)
	if bad != nil {
		return nil, bad
	}
	if end.Before(start) {
		return nil, badParam("end", errors.New("end timestamp must not be before start time"))
	}
	sets, err := h.parseSelectors(r, func(err error) *api.Error { return badParam("match[]", err) })
	if err != nil {
		return nil, err
	}
	// A time is a millisecond, all of which is meant.
	last := end.UnixNano()
	if end.Before(maxTime.Add(-time.Millisecond)) {
		last += int64(time.Millisecond) - 1
	}
	for _, ms := range sets {
		if err := h.o.Delete(r.Context(), r.Tenant(), ms, start.UnixNano(), last); err != nil {
			return nil, err
		}
	}
	return &api.Response{Status: http.StatusNoContent}, nil
}

// cleanTombstones asks for deleted rows to be dropped without delay.
func (h *Handler) cleanTombstones(*api.Request) (*api.Response, error) {
	if h.o.Clean == nil {
		return nil, unavailable("admin APIs disabled")
	}
	h.o.Clean()
	return &api.Response{Status: http.StatusNoContent}, nil
}

// mimirEndpoints are those that change data, where Mimir has them.
func (h *Handler) mimirEndpoints() []api.Endpoint {
	const root = "/prometheus" + prefix
	return []api.Endpoint{
		{Pattern: root + deleteSeries, Name: "delete_series", Needs: bounded, Methods: changes, Serve: h.deleteSeries},
		{Pattern: root + cleanTombstones, Name: "clean_tombstones", Needs: bounded, Methods: changes, Serve: h.cleanTombstones},
	}
}
