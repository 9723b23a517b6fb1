package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/auth"
	"github.com/shaledb/shale/internal/auth/certs"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/graphite"
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
		{"graphite-cache-query-listen", c.GraphiteCacheListen},
	} {
		if l[1] != "" && isReachable(l[1]) {
			return fmt.Errorf("%w: %s: other machines may reach %s, and Graphite's protocol has no authentication: listen on 127.0.0.1, use graphite-tls-listen, or accept that anyone may use it by %s",
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

// lookForFiles is how often the files of tokens, of tenants and of TLS are looked at.
const lookForFiles = 2 * time.Second

// watchFile runs a watcher that SIGHUP hurries. stop ends it.
func watchFile(ctx context.Context, watch func(context.Context, time.Duration, <-chan os.Signal)) (stop func()) {
	hurry := make(chan os.Signal, 1)
	signal.Notify(hurry, syscall.SIGHUP)
	watching, end := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { watch(watching, lookForFiles, hurry) })
	return func() {
		signal.Stop(hurry)
		end()
		done.Wait()
	}
}

// openCerts returns the certificates of the listeners, or nil if they speak no TLS. stop ends their
// goroutine.
func openCerts(ctx context.Context, c *config.TLS, registry *prometheus.Registry, log *slog.Logger) (s *certs.Source, stop func(), err error) {
	if c.Cert == "" {
		return nil, func() {}, nil
	}
	s, err = certs.New(certs.Options{Cert: c.Cert, Key: c.Key, ClientCA: c.ClientCA, MinVersion: c.MinVersion.Number(), Registerer: registry, Logger: log})
	if err != nil {
		return nil, nil, err
	}
	return s, watchFile(ctx, s.Watch), nil
}

// httpTLS returns the configuration of the HTTP listener, or nil. It speaks HTTP/1.1 only: the streams of one
// connection of HTTP/2 would escape limits.connections.
func httpTLS(s *certs.Source, c *config.TLS) *tls.Config {
	if s == nil {
		return nil
	}
	demand := certs.Request
	if c.ClientCerts.Required() {
		demand = certs.Require
	}
	return s.Config(demand, "http/1.1")
}

// doors returns the listeners of Graphite that speak TLS.
func doors(c *config.Config, s *certs.Source, g *auth.Guard) graphite.Doors {
	if c.GraphiteTLSListen == "" && c.GraphitePickleTLSListen == "" {
		return graphite.Doors{}
	}
	return graphite.Doors{
		Listen: c.GraphiteTLSListen, PickleListen: c.GraphitePickleTLSListen, TLS: s.Config(certs.Require),
		Tenant: func(state *tls.ConnectionState) (string, error) { return g.AdmitConnection(state, auth.Write) },
	}
}
