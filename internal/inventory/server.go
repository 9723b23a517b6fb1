package inventory

import (
	"context"
	"fmt"
	"net/url"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/config"
)

// Server is the server to ask.
type Server struct {
	URL     string          `name:"url" default:"http://127.0.0.1:9480" placeholder:"URL" help:"Server to ask."`
	Tenant  string          `placeholder:"NAME" help:"Tenant to ask about (X-Scope-OrgID)."`
	Timeout config.Duration `default:"2m" placeholder:"TIME" help:"How long to wait for the response."`

	client.Access `embed:""`
}

// Validate returns what is wrong with the flags.
func (f *Server) Validate() error {
	u, err := url.Parse(f.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("--url: %q is not a URL such as http://127.0.0.1:9480", f.URL)
	}
	return nil
}

// connect returns the server, and a context for all requests to it.
func (f *Server) connect(ctx context.Context) (*client.Server, context.Context, context.CancelFunc, error) {
	server := &client.Server{URL: f.URL, Tenant: f.Tenant}
	if err := server.Allow(&f.Access); err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, f.Timeout.Std(), fmt.Errorf("no response within %s (--timeout)", f.Timeout))
	return server, ctx, cancel, nil
}
