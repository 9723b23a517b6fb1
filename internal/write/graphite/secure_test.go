package graphite

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/auth/certstest"
	"github.com/shaledb/shale/internal/write"
)

// TestDoors: clients over TLS write for the tenants of their certificates, as long as these have the right.
func TestDoors(t *testing.T) {
	servers, clients := certstest.New(t, "servers"), certstest.New(t, "clients")
	var revoked atomic.Bool
	s := newStore()
	b := start(t, s, Options{Doors: Doors{
		Listen: "127.0.0.1:0", PickleListen: "127.0.0.1:0",
		TLS: &tls.Config{
			Certificates: []tls.Certificate{servers.Server(t, "shale").TLS(t)}, ClientCAs: clients.Pool(), ClientAuth: tls.RequireAndVerifyClientCert,
		},
		Tenant: func(state *tls.ConnectionState) (string, error) {
			if revoked.Load() {
				return "", errors.New("it has been revoked")
			}
			return state.VerifiedChains[0][0].DNSNames[0], nil
		},
	}}, write.Limits{MaxInflightBytes: 64 << 20, MaxFuture: time.Hour})
	text, pickle := b.SecureAddrs()
	dial := func(to net.Addr, name string) *tls.Conn {
		t.Helper()
		c := &tls.Config{RootCAs: servers.Pool(), ServerName: "localhost"}
		if name != "" {
			c.Certificates = []tls.Certificate{clients.Client(t, name).TLS(t)}
		}
		nc, err := tls.Dial("tcp", to.String(), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		return nc
	}
	ended := func(what string, nc net.Conn) {
		t.Helper()
		_ = nc.SetReadDeadline(time.Now().Add(time.Minute))
		var slow net.Error
		if _, err := nc.Read(make([]byte, 1)); err == nil || errors.As(err, &slow) && slow.Timeout() {
			t.Errorf("%s: the connection is not closed: %v", what, err)
		}
	}
	lines, pickles := dial(text, "team-a"), dial(pickle, "team-b")
	say(t, lines, "a 1 -1\n")
	say(t, pickles, frameOf("b", 2, 1))
	s.wait(t, 3)
	for _, row := range []string{`team-a{__name__="a"}`, `team-b{__name__="b.0"}`, `team-b{__name__="b.1"}`} {
		if s.Rows[row] == nil {
			t.Errorf("%s is not stored: %v", row, s.Rows)
		}
	}
	ended("without a certificate", dial(text, ""))
	plain, err := net.Dial("tcp", text.String())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	say(t, plain, "plain 1 -1\n")
	if _, err := io.ReadAll(plain); errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	b.want(t, b.metrics.unidentified, 2)

	revoked.Store(true)
	say(t, lines, "a 2 -1\n")
	say(t, pickles, frameOf("b", 2, 2))
	ended("a revoked sender of lines", lines)
	ended("a revoked sender of pickles", pickles)
	ended("a revoked client that connects", dial(text, "team-a"))
	b.wantLost(t, "revoked", 1)
	if n := s.stored(); n != 3 {
		t.Errorf("%d rows are stored, 3 were before", n)
	}
}

// TestSlowHandshake: a stop does not wait for a client that connects and says nothing.
func TestSlowHandshake(t *testing.T) {
	servers := certstest.New(t, "servers")
	b := start(t, newStore(), Options{Doors: Doors{
		Listen: "127.0.0.1:0", TLS: &tls.Config{Certificates: []tls.Certificate{servers.Server(t, "shale").TLS(t)}},
		Tenant: func(*tls.ConnectionState) (string, error) { return "", nil },
	}}, write.Limits{})
	text, _ := b.SecureAddrs()
	nc, err := net.Dial("tcp", text.String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	b.want(t, b.metrics.connections, 1)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b.want(t, b.metrics.connections, 0)
}
