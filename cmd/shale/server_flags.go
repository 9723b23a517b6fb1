package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/config"
)

// serverFlags names the server that a command queries.
type serverFlags struct {
	URL     string          `name:"url" default:"http://127.0.0.1:9480" placeholder:"URL" help:"Server to query; any with the Prometheus API or, with --logs, the Loki API."`
	Tenant  string          `placeholder:"NAME" help:"Tenant to query (X-Scope-OrgID)."`
	Timeout config.Duration `default:"2m" placeholder:"TIME" help:"How long to wait for the response."`
}

func (f *serverFlags) server() (*client.Server, error) { return newServer(f.URL, f.Tenant) }

// deadline bounds all requests of a command by --timeout.
func (f *serverFlags) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, f.Timeout.Std(), fmt.Errorf("no response within %s (--timeout)", f.Timeout))
}

// newServer returns the server that the flags --url and --tenant name.
func newServer(text, tenant string) (*client.Server, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("--url: %q is not a URL such as http://127.0.0.1:9480", text)
	}
	return &client.Server{URL: text, Tenant: tenant, Header: http.Header{"User-Agent": {"shale/" + version}}}, nil
}
