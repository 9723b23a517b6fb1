package loki

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/read/logql"
)

// Deletions are the deletions of lines. It is safe for concurrent use.
type Deletions interface {
	// Delete hides the lines that a query means with times from start to end, in Unix nanoseconds.
	Delete(ctx context.Context, tenant, query string, start, end int64) error
	// List returns the deletions of a tenant that were not cancelled, oldest first.
	List(ctx context.Context, tenant string) ([]DeleteRequest, error)
	// Cancel shows the lines again: all of them, or with force those that have not been dropped. The error is
	// [ErrNoDeletion] or [ErrDeletionBegun], or of a class of package model.
	Cancel(ctx context.Context, tenant, id string, force bool) error
	// CacheGeneration changes when results that were computed before may have changed.
	CacheGeneration() string
}

// DeleteRequest is a deletion in a list. Times are in Unix nanoseconds.
type DeleteRequest struct {
	ID, Query           string
	Start, End, Created int64
	// Done and Total count the blocks that the deletion concerns. Processed says that nothing is left.
	Done, Total int
	Processed   bool
}

// The reasons for which a deletion cannot be cancelled, in Loki's words.
var (
	ErrNoDeletion    = errors.New("could not find delete request with given id")
	ErrDeletionBegun = errors.New("deletion of request which is in process or already processed is not allowed")
)

// textNoDeletion is Loki's text for a tenant that may not delete.
const textNoDeletion = "deletion is not available for this tenant"

// deletions returns the tenant of a request about deletions.
func (h *Handler) deletions(r *api.Request) (tenant string, err error) {
	if h.o.Deletions == nil {
		return "", failed(http.StatusForbidden, errors.New(textNoDeletion))
	}
	if len(r.Tenants) != 1 {
		return "", bad(errManyTenants)
	}
	return r.Tenants[0], nil
}

// delete serves the requests for deletions: it adds one, lists them or cancels one.
func (h *Handler) delete(r *api.Request) (*api.Response, error) {
	tenant, err := h.deletions(r)
	if err != nil {
		return nil, err
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return h.listDeletions(r.Context(), tenant)
	case http.MethodDelete:
		return h.cancelDeletion(r, tenant)
	}
	p, err := parseDeletion(r.Form, h.o.Now())
	if err != nil {
		return nil, bad(err)
	}
	if err := r.Quota.TakeBytes(treeBytes * int64(len(p.query))); err != nil {
		return nil, err
	}
	if err := h.o.Deletions.Delete(r.Context(), tenant, p.query, p.start, p.end); err != nil {
		return nil, err
	}
	return &api.Response{Status: http.StatusNoContent}, nil
}

type deletionParams struct {
	query      string
	start, end int64
}

// parseDeletion reads the parameters in Loki's order, with its texts. max_interval is checked and has no
// effect: a deletion is not carried out in pieces of time.
func parseDeletion(form url.Values, now time.Time) (p deletionParams, err error) {
	if p.query = form.Get("query"); p.query == "" {
		return p, errors.New("query not set")
	}
	test, err := logql.ParseLineTest(p.query)
	if err != nil {
		return p, fmt.Errorf("invalid query expression: %w", err)
	}
	text := form.Get("start")
	if text == "" {
		return p, errors.New("start time not set")
	}
	start, ok := deletionTime(text, now)
	if !ok {
		return p, errors.New("invalid start time: require unix seconds or RFC3339 format")
	}
	end, ok := deletionTime(form.Get("end"), now)
	switch {
	case !ok:
		return p, errors.New("invalid end time: require unix seconds or RFC3339 format")
	case end > now.UnixMilli():
		return p, errors.New("deletes in the future are not allowed")
	case start > end:
		return p, errors.New("start time can't be greater than end time")
	}
	if !test.All() {
		if err := checkInterval(form.Get("max_interval"), time.Duration(end-start)*time.Millisecond); err != nil {
			return p, err
		}
	}
	p.start, p.end = nanoseconds(start), nanoseconds(end)
	return p, nil
}

func checkInterval(text string, deleted time.Duration) error {
	if text == "" {
		if deleted < time.Second {
			return errors.New("difference between start time and end time must be at least one second")
		}
		return nil
	}
	interval, err := time.ParseDuration(text)
	switch {
	case err != nil || interval < time.Second:
		return errors.New("invalid max_interval: valid time units are 's', 'm', 'h'")
	case interval > deleted:
		return fmt.Errorf("max_interval can't be greater than the interval to be deleted (%s)", deleted)
	}
	return nil
}

// deletionTime reads RFC 3339, or Unix seconds of ten digits, as milliseconds. Empty: now.
func deletionTime(text string, now time.Time) (ms int64, ok bool) {
	if text == "" {
		return now.UnixMilli(), true
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.UnixMilli(), true
	}
	if len(text) != 10 {
		return 0, false
	}
	s, err := strconv.ParseFloat(text, 64)
	return int64(s * 1000), err == nil && !math.IsNaN(s) && math.Abs(s) < 1e12
}

// nanoseconds returns milliseconds in nanoseconds, saturated.
func nanoseconds(ms int64) int64 { return saturated(time.UnixMilli(ms)) }

// deletionEntry is a deletion in JSON. Times are Unix seconds.
type deletionEntry struct {
	ID      string      `json:"request_id"`
	Start   json.Number `json:"start_time"`
	End     json.Number `json:"end_time"`
	Query   string      `json:"query"`
	Status  string      `json:"status"`
	Created json.Number `json:"created_at"`
}

func (h *Handler) listDeletions(ctx context.Context, tenant string) (*api.Response, error) {
	all, err := h.o.Deletions.List(ctx, tenant)
	if err != nil {
		return nil, err
	}
	list := []deletionEntry{}
	for _, d := range all {
		list = append(list, deletionEntry{
			ID: d.ID, Start: seconds(d.Start), End: seconds(d.End), Query: d.Query, Status: d.status(), Created: seconds(d.Created),
		})
	}
	return sendJSON(list)
}

// seconds writes Unix nanoseconds as seconds, to the millisecond.
func seconds(ns int64) json.Number {
	return json.Number(strconv.FormatFloat(float64(time.Unix(0, ns).UnixMilli())/1000, 'f', -1, 64))
}

// status is Loki's word for the progress.
func (d *DeleteRequest) status() string {
	switch {
	case d.Processed:
		return "processed"
	case d.Done == 0 || d.Total == 0:
		return "received"
	}
	return fmt.Sprintf("%d%% Complete", min(99, d.Done*100/d.Total))
}

func (h *Handler) cancelDeletion(r *api.Request, tenant string) (*api.Response, error) {
	err := h.o.Deletions.Cancel(r.Context(), tenant, r.Form.Get("request_id"), r.Form.Get("force") == "true")
	switch {
	case errors.Is(err, ErrNoDeletion):
		return nil, failed(http.StatusNotFound, err)
	case errors.Is(err, ErrDeletionBegun):
		return nil, bad(err)
	case err != nil:
		return nil, err
	}
	return &api.Response{Status: http.StatusNoContent}, nil
}

// cacheGeneration serves the text by which caches of results tell whether they are still right.
func (h *Handler) cacheGeneration(r *api.Request) (*api.Response, error) {
	if _, err := h.deletions(r); err != nil {
		return nil, err
	}
	return sendJSON(h.o.Deletions.CacheGeneration())
}

func sendJSON(v any) (*api.Response, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	res := response(func(b *api.Body) { b.Raw(string(data) + "\n") })
	res.ContentType = "application/json"
	return res, nil
}
