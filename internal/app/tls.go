package app

import (
	"context"
	"crypto/tls"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/auth"
	"github.com/shaledb/shale/internal/auth/certs"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/write/graphite"
)

// lookForFiles is how often the files of tokens and of TLS are looked at.
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
