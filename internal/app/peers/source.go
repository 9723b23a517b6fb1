package peers

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/remote"
)

// Open returns the source of what ingesters hold.
func Open(c *config.Roles, log remote.Log, deletions func(context.Context, string, model.Signal) ([]remote.Deletion, error), registry prometheus.Registerer) (*remote.Source, error) {
	o := remote.Options{Peers: c.IngesterList(), Zone: c.Zone, Log: log, Deletions: deletions, TLS: c.PeerTLS.On(), Registerer: registry}
	if c.PeerToken != "" {
		token, err := OpenToken(c.PeerToken)
		if err != nil {
			return nil, err
		}
		o.Prepare = token.Add
	}
	if o.TLS {
		var err error
		if o.Client, err = Client(c.PeerCA); err != nil {
			return nil, err
		}
	}
	return remote.New(o), nil
}

// strongHeader asks for answers with everything that was acknowledged before the request, by Mimir's name.
const strongHeader = "X-Read-Consistency"

// Strong returns a mux whose endpoints pass what the header says on to the source.
func Strong(mux api.Mux) api.Mux { return strong{mux} }

type strong struct{ api.Mux }

// Handle is [api.Mux.Handle].
func (m strong) Handle(pattern string, h http.Handler) {
	m.Mux.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(strongHeader) == "strong" {
			r = r.WithContext(remote.Strong(r.Context()))
		}
		h.ServeHTTP(w, r)
	}))
}
