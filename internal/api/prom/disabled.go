package prom

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/shaledb/shale/internal/api"
)

// Shale responds to what it does not have like a Prometheus that has it switched off, so that clients fall
// back as they do there.

func unavailable(text string) *api.Error {
	return &api.Error{Kind: typeUnavailable, Status: http.StatusInternalServerError, Err: errors.New(text)}
}

// searchDisabled is the response of a Prometheus without its experimental search. Clients fall back to
// labels.
func searchDisabled(*api.Request) (*api.Response, error) {
	return nil, unavailable("search API disabled")
}

// adminDisabled is the response of a Prometheus without --web.enable-admin-api.
func adminDisabled(r *api.Request) (*api.Response, error) {
	if r.Method != http.MethodPost && r.Method != http.MethodPut {
		r.W.Header().Set("Allow", "POST, PUT")
		return nil, &api.Error{Status: http.StatusMethodNotAllowed, Err: errors.New("method " + r.Method + " is not allowed")}
	}
	return nil, unavailable("admin APIs disabled")
}

// noNotifications is the response of a Prometheus that takes no further subscriber. A browser does not
// connect a second time after a 204.
func noNotifications(*api.Request) (*api.Response, error) {
	return &api.Response{Status: http.StatusNoContent}, nil
}

// scrapePoolConfig finds no scrape pool, since there is none.
func scrapePoolConfig(r *api.Request) (*api.Response, error) {
	pool := r.Form.Get("scrapePool")
	if pool == "" {
		return nil, badData("no scrapePool parameter provided")
	}
	return nil, badData("error retrieving scrape config: scrape pool %.200q not found", pool)
}

// labelsBytes is the memory of labels for each byte of their JSON: a label may have eight, and is in a map
// first.
const labelsBytes = 16

// relabelSteps checks its parameters in upstream's order, and finds no scrape pool.
func relabelSteps(r *api.Request) (*api.Response, error) {
	text := r.Form.Get("labels")
	if r.Form.Get("scrapePool") != "" {
		if text == "" {
			return nil, badData("no labels parameter provided")
		}
		if err := r.Quota.TakeBytes(labelsBytes * int64(len(text))); err != nil {
			return nil, err
		}
		var ls labels.Labels
		if err := json.Unmarshal([]byte(text), &ls); err != nil {
			return nil, plainBad(fmt.Errorf("error parsing labels: %w", err))
		}
	}
	return scrapePoolConfig(r)
}
