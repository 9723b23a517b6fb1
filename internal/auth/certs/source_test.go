package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/auth/certstest"
	"github.com/shaledb/shale/internal/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a source with its files.
type world struct {
	*Source
	ca  *certstest.Authority
	dir string
	log bytes.Buffer
}

func newWorld(t *testing.T, clientCA *certstest.Authority, version uint16) *world {
	w := &world{ca: certstest.New(t, "servers"), dir: t.TempDir()}
	o := Options{MinVersion: version, Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.NewTextHandler(&w.log, nil))}
	o.Cert, o.Key = w.ca.Server(t, "first").Write(t, w.dir, "server")
	if clientCA != nil {
		o.ClientCA = certstest.File(t, w.dir, "clients.pem", clientCA.PEM())
	}
	var err error
	if w.Source, err = New(o); err != nil {
		t.Fatal(err)
	}
	return w
}

// shake makes a handshake. It returns the name of the server, and that of the client as the server sees it.
func (w *world) shake(t *testing.T, d Demand, client *tls.Config) (server, seen string, err error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	client.RootCAs, client.ServerName = w.ca.Pool(), "localhost"
	far, near := tls.Server(a, w.Config(d, "http/1.1")), tls.Client(b, client)
	done := make(chan error, 1)
	go func() {
		err := far.HandshakeContext(t.Context())
		if err != nil {
			_ = a.Close()
		}
		done <- err
	}()
	nearErr := near.HandshakeContext(t.Context())
	if nearErr != nil {
		_ = b.Close()
	} else { // with TLS 1.3 the server goes on writing: its tickets, or why the client is not let in
		go func() { _, _ = io.Copy(io.Discard, near) }()
	}
	if farErr := <-done; farErr != nil || nearErr != nil {
		return "", "", errors.Join(farErr, nearErr)
	}
	if chains := far.ConnectionState().VerifiedChains; len(chains) > 0 {
		seen = chains[0][0].Subject.CommonName
	}
	return near.ConnectionState().PeerCertificates[0].Subject.CommonName, seen, nil
}

// TestHandshakes: which clients get a connection.
func TestHandshakes(t *testing.T) {
	ca, other := certstest.New(t, "clients"), certstest.New(t, "strangers")
	with := func(p certstest.Pair) *tls.Config { return &tls.Config{Certificates: []tls.Certificate{p.TLS(t)}} }
	w := newWorld(t, ca, tls.VersionTLS12)
	for _, test := range []struct {
		name   string
		demand Demand
		client *tls.Config
		seen   string
		err    string
	}{
		{"none is requested", Request, &tls.Config{}, "", ""},
		{"none is required", Require, &tls.Config{}, "", "certificate"},
		{"one", Request, with(ca.Client(t, "agent")), "agent", ""},
		{"one that is required", Require, with(ca.Client(t, "agent")), "agent", ""},
		{"TLS 1.2", Require, &tls.Config{Certificates: []tls.Certificate{ca.Client(t, "agent").TLS(t)}, MaxVersion: tls.VersionTLS12}, "agent", ""},
		{"TLS 1.1", Request, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, "", "version"},
		{"the protocols of a browser", Request, &tls.Config{NextProtos: []string{"h2", "http/1.1"}}, "", ""},
		{"HTTP/2 alone", Request, &tls.Config{NextProtos: []string{"h2"}}, "", "protocol"},
	} {
		_, seen, err := w.shake(t, test.demand, test.client)
		if seen != test.seen || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %q, %v", test.name, seen, err)
		}
	}
	// A client picks no certificate of an authority that the server does not name, unless it is made to.
	stranger := other.Client(t, "agent").TLS(t)
	forced := &tls.Config{GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &stranger, nil }}
	if _, _, err := w.shake(t, Request, forced); err == nil {
		t.Error("a certificate of another authority is accepted")
	}
	if started, completed := testutil.ToFloat64(w.started), testutil.ToFloat64(w.completed); started != 9 || completed != 5 {
		t.Errorf("%v handshakes began, %v succeeded", started, completed)
	}
	if _, _, err := newWorld(t, nil, tls.VersionTLS13).shake(t, Request, &tls.Config{MaxVersion: tls.VersionTLS12}); err == nil {
		t.Error("TLS 1.2 is accepted where 1.3 is the least")
	}
}

// TestReload: changed files count once they fit together.
func TestReload(t *testing.T) {
	ca, next := certstest.New(t, "clients"), certstest.New(t, "next")
	w := newWorld(t, ca, tls.VersionTLS12)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	hurry := make(chan os.Signal)
	go func() { defer close(done); w.Watch(ctx, time.Hour, hurry) }()
	look := func() {
		t.Helper()
		hurry <- os.Interrupt
		hurry <- os.Interrupt // the first look has ended
	}
	agent := func() *tls.Config { return &tls.Config{Certificates: []tls.Certificate{ca.Client(t, "agent").TLS(t)}} }
	want := func(what, server, seen string, fresh float64) {
		t.Helper()
		gotServer, gotSeen, err := w.shake(t, Request, agent())
		if gotServer != server || gotSeen != seen || testutil.ToFloat64(w.fresh) != fresh {
			t.Errorf("%s: server %q, client %q, fresh %v, %v", what, gotServer, gotSeen, testutil.ToFloat64(w.fresh), err)
		}
	}
	want("at first", "first", "agent", 1)
	second := w.ca.Server(t, "second")
	certstest.File(t, w.dir, "server.pem", second.Cert)
	look()
	want("a certificate without its key", "first", "agent", 0)
	certstest.File(t, w.dir, "server.key", second.Key)
	look()
	want("both", "second", "agent", 1)
	_ = os.Remove(w.o.ClientCA)
	look()
	want("a file is gone", "second", "agent", 0)
	certstest.File(t, w.dir, "clients.pem", []byte("x"))
	look()
	want("a broken file", "second", "agent", 0)
	certstest.File(t, w.dir, "clients.pem", next.PEM())
	look()
	want("the authority is another", "second", "", 1) // the client has no certificate of it
	certstest.File(t, w.dir, "clients.pem", append(next.PEM(), ca.PEM()...))
	look()
	want("both authorities", "second", "agent", 1)
	stop()
	<-done
}

// TestFiles: an error names the setting and the file.
func TestFiles(t *testing.T) {
	w := newWorld(t, certstest.New(t, "clients"), tls.VersionTLS12)
	for _, test := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.Cert = "missing.pem" }, "tls.cert-file: open missing.pem"},
		{func(o *Options) { o.Key = w.o.Cert }, "tls.key-file"},
		{func(o *Options) { o.ClientCA = w.o.Key }, `tls.client-ca-file ` + w.o.Key + `: expected certificates, found "PRIVATE KEY"`},
		{func(o *Options) { o.ClientCA = certstest.File(t, w.dir, "none", []byte("x")) }, "found none"},
		{func(o *Options) { o.ClientCA = certstest.File(t, w.dir, "large", make([]byte, maxFileBytes+1)) }, "expected at most"},
	} {
		o := w.o
		o.Registerer = prometheus.NewRegistry()
		test.change(&o)
		if _, err := New(o); !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
}
