package admin

import (
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/shaledb/shale/internal/api"
)

// healthy is healthz in the words of Prometheus.
func (a *API) healthy(r *api.Request) (*api.Response, error) {
	return text(r, http.StatusOK, "Shale is Healthy.\n"), nil
}

// lifecycle answers like a Prometheus whose lifecycle API is disabled: no request ends or reloads the
// process.
func lifecycle(r *api.Request) (*api.Response, error) {
	switch r.Method {
	case http.MethodPost, http.MethodPut:
		return text(r, http.StatusForbidden, "Lifecycle API is not enabled."), nil
	}
	r.W.Header().Set("Allow", "POST, PUT")
	return text(r, http.StatusMethodNotAllowed, "Only POST or PUT requests allowed"), nil
}

// profilesPath is the path that `go tool pprof` expects.
const profilesPath = "/debug/pprof/"

// profile serves the profiles of the process, one at a time, if they are switched on.
func (a *API) profile(r *api.Request) (*api.Response, error) {
	if !a.o.Profiles {
		return text(r, http.StatusForbidden, "profiles are off (http-pprof)\n"), nil
	}
	if !a.profiling.TryLock() {
		return text(r, http.StatusServiceUnavailable, "another profile is being taken; try again later\n"), nil
	}
	defer a.profiling.Unlock()
	serve := pprof.Index
	switch strings.TrimPrefix(r.URL.Path, profilesPath) {
	case "cmdline":
		serve = pprof.Cmdline
	case "profile":
		serve = pprof.Profile
	case "symbol":
		serve = pprof.Symbol
	case "trace":
		serve = pprof.Trace
	}
	serve(r.W, r.Request)
	return &api.Response{Sent: true}, nil
}
