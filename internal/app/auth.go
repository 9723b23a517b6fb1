package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/auth"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
)

// refuseOpenDoors returns an error if a listener that other machines may reach takes requests of anyone, and
// the settings do not accept that.
func refuseOpenDoors(c *config.Config) error {
	if c.Auth.Anyone.On() {
		return nil
	}
	const accept = "auth.let-anyone-read-write-and-delete=on"
	if c.Auth.Tokens == "" && isReachable(c.HTTPListen) {
		return fmt.Errorf("%w: http-listen: other machines may reach %s, and no token is required: set auth.tokens, listen on 127.0.0.1, or accept what anyone may do by %s",
			model.ErrInvalid, c.HTTPListen, accept)
	}
	for _, l := range [...][2]string{
		{"graphite-listen", c.GraphiteListen}, {"graphite-pickle-listen", c.GraphitePickleListen}, {"graphite-protobuf-listen", c.GraphiteProtobufListen},
	} {
		if l[1] != "" && isReachable(l[1]) {
			return fmt.Errorf("%w: %s: other machines may reach %s, and Graphite's protocol has no authentication: listen on 127.0.0.1, use graphite-tls-listen, or accept that anyone may write by %s",
				model.ErrInvalid, l[0], l[1], accept)
		}
	}
	return nil
}

// isReachable reports whether other machines may reach an address. One that cannot be resolved counts as
// reachable.
func isReachable(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || host == "" {
		return true
	}
	if ip := net.ParseIP(host); ip != nil {
		return !ip.IsLoopback()
	}
	ips, err := net.LookupIP(host)
	if err != nil || len(ips) == 0 {
		return true
	}
	for _, ip := range ips {
		if !ip.IsLoopback() {
			return true
		}
	}
	return false
}

// newGuard returns the guard of the HTTP endpoints, or nil if there are no tokens. stop ends its goroutine,
// and closes the audit file.
func newGuard(ctx context.Context, c *config.Config, registry *prometheus.Registry, log *slog.Logger) (g *auth.Guard, stop func(), err error) {
	if c.Auth.Tokens == "" {
		if c.Auth.Audit != "" {
			return nil, nil, fmt.Errorf("%w: auth.audit-file: it has the names of tokens, so it requires auth.tokens", model.ErrInvalid)
		}
		return nil, func() {}, nil
	}
	audit, closeAudit := log, func() {}
	if c.Auth.Audit != "" {
		f, err := os.OpenFile(c.Auth.Audit, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: auth.audit-file: %v", model.ErrInvalid, err)
		}
		audit, closeAudit = slog.New(slog.NewJSONHandler(f, nil)), func() { _ = f.Close() }
	}
	g, err = auth.New(auth.Options{File: c.Auth.Tokens, Registerer: registry, Logger: log, Audit: audit})
	if err != nil {
		closeAudit()
		return nil, nil, err
	}
	stopWatching := watchFile(ctx, g.Watch)
	return g, func() {
		stopWatching()
		closeAudit()
	}, nil
}
