package app

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api/admin"
	"github.com/shaledb/shale/internal/app/conns"
	"github.com/shaledb/shale/internal/auth"
	"github.com/shaledb/shale/internal/config"
)

// TestEveryEndpointHasARow: what is mounted has a row in the table of scopes, each row is mounted by the role
// all or by ingesters, and docs/security.md has each row with its right.
func TestEveryEndpointHasARow(t *testing.T) {
	s := newSetup(t, nil)
	defer func() { must(t, s.Close()) }()
	c := config.Default()
	must(t, c.Memory.UnmarshalText([]byte("256MiB")))
	must(t, c.Resolve(config.Machine{MemoryBytes: 1 << 30, DiskBytes: 1 << 30}))
	c.GraphiteListen, c.GraphitePickleListen = "", ""
	registry, log := prometheus.NewRegistry(), slog.New(slog.DiscardHandler)
	h := &servers{http: &listener{admin: admin.New(admin.Options{Gatherer: registry}), Connections: new(conns.Connections), server: &http.Server{}}}
	must(t, h.mount(c, s.Engine, registry, log))
	defer func() { _, _, _ = h.http.closeLogs(), h.http.names.Close(), h.http.engine.Close() }()

	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "security.md"))
	must(t, err)
	for row, needs := range scopes() {
		if of := strings.HasPrefix(row, "/internal/v1/"); of == slices.Contains(h.mounted, row) {
			t.Errorf("the row %q: mounted is %t, and the role all mounts what is not of ingesters alone", row, !of)
		}
		if line := "| `" + row + "` | " + needs.String() + " |"; !strings.Contains(string(doc), line) {
			t.Errorf("docs/security.md lacks the line %s", line)
		}
	}
	peers := newGuardedMux(nil)
	must(t, (&ingestRole{n: &node{config: &c, registry: prometheus.NewRegistry()}}).mount(peers))
	for row := range scopes() {
		if strings.HasPrefix(row, "/internal/v1/") && !slices.Contains(peers.mounted, row) {
			t.Errorf("no ingester mounts the row %q", row)
		}
	}
	m := newGuardedMux(nil)
	m.Handle("/nowhere", http.NotFoundHandler())
	if err := m.unknown(); err == nil || !strings.Contains(err.Error(), `"/nowhere" has no row`) {
		t.Errorf("an endpoint without a row: %v", err)
	}
}

// TestOpenDoors: a listener that other machines reach is refused without authentication.
func TestOpenDoors(t *testing.T) {
	for _, test := range []struct {
		http, graphite, tokens, anyone, want string
	}{
		{"127.0.0.1:0", "127.0.0.1:0", "", "off", ""},
		{"[::1]:0", "localhost:0", "", "off", ""},
		{":9480", "", "", "off", "http-listen"},
		{"0.0.0.0:9480", "", "", "off", "http-listen"},
		{"192.0.2.1:9480", "", "", "off", "http-listen"},
		{"no such host:1", "", "", "off", "http-listen"},
		{":9480", "", "keys.yaml", "off", ""},
		{":9480", "", "", "on", ""},
		{":9480", "[::]:2003", "keys.yaml", "off", "graphite-listen"},
		{":9480", "[::]:2003", "keys.yaml", "on", ""},
	} {
		c := config.Default()
		c.HTTPListen, c.GraphiteListen, c.Auth.Tokens = test.http, test.graphite, test.tokens
		must(t, c.Auth.Anyone.UnmarshalText([]byte(test.anyone)))
		err := refuseOpenDoors(&c)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want+": ")) {
			t.Errorf("%+v: %v", test, err)
		}
	}
	if auth.Open.String() != "open" {
		t.Error("the zero right is not open")
	}
}
