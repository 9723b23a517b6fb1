package app

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/auth"
	"github.com/shaledb/shale/internal/auth/certstest"
	"github.com/shaledb/shale/internal/config"
)

// TestTLS runs a whole server whose listeners speak TLS, for clients with certificates and with tokens.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	servers, clients := certstest.New(t, "servers"), certstest.New(t, "clients")
	s := startServerWith(t, t.TempDir(), func(c *config.Config) {
		c.TLS.Cert, c.TLS.Key = servers.Server(t, "shale").Write(t, dir, "server")
		c.TLS.ClientCA = certstest.File(t, dir, "clients.pem", clients.PEM())
		c.Auth.Tokens = certstest.File(t, dir, "keys.yaml", fmt.Appendf(nil, `
tokens: [{name: reader, sha256: %s, tenants: [team-a], rights: [read]}]
clients: [{name: agent, san: "dns:agent.example", tenants: [team-a], rights: [write]}]
`, auth.Sum("shale_reader")))
		c.GraphiteTLSListen = "127.0.0.1:0"
	})
	plainURL := s.url
	base := strings.Replace(s.url, "http:", "https:", 1)
	agent := &tls.Config{RootCAs: servers.Pool(), ServerName: "localhost", Certificates: []tls.Certificate{clients.Client(t, "agent.example").TLS(t)}}
	client := func(c *tls.Config) *http.Client {
		transport := &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport, Timeout: time.Minute}
	}
	do := func(c *http.Client, method, path, token string, body []byte) (int, string) {
		t.Helper()
		r, err := http.NewRequest(method, base+path, bytes.NewReader(body))
		must(t, err)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := c.Do(r)
		if err == nil && resp.ProtoMajor != 1 {
			t.Errorf("the server speaks %s", resp.Proto)
		}
		return finish(t, resp, err)
	}
	bare, known := client(&tls.Config{RootCAs: servers.Pool()}), client(agent)
	if status, text := do(bare, "GET", "/ready", "", nil); status != 200 {
		t.Errorf("ready: %d %s", status, text)
	}
	line := []byte(pushBody("over TLS"))
	for _, test := range []struct {
		name   string
		client *http.Client
		token  string
		status int
	}{{"nothing", bare, "", 401}, {"a token that only reads", bare, "shale_reader", 403}, {"a certificate", known, "", 204}, {"a wrong token with it", known, "x", 401}} {
		if status, text := do(test.client, "POST", "/loki/api/v1/push", test.token, line); status != test.status {
			t.Errorf("%s: %d %s", test.name, status, text)
		}
	}
	if status, text := do(bare, "GET", "/loki/api/v1/query_range?query=%7Bapp=%22d%22%7D", "shale_reader", nil); status != 200 || !strings.Contains(text, "over TLS") {
		t.Errorf("a query: %d %s", status, text)
	}
	if status, text := do(known, "GET", "/loki/api/v1/labels", "", nil); status != 403 || !strings.Contains(text, `the certificate "agent" lacks the right read`) {
		t.Errorf("a certificate that only writes: %d %s", status, text)
	}
	// The client reads why its body is refused.
	if status, text := do(known, "POST", "/loki/api/v1/push", "", make([]byte, 40<<20)); status != http.StatusRequestEntityTooLarge || !strings.Contains(text, "limits.body-bytes") {
		t.Errorf("a large body: %d %s", status, text)
	}
	r, err := http.Get(plainURL + "/ready")
	if status, text := finish(t, r, err); status != 400 || !strings.Contains(text, "HTTPS") {
		t.Errorf("HTTP without TLS: %d %s", status, text)
	}

	// Graphite's points belong to the tenant of the certificate.
	at := regexp.MustCompile(`graphite_tls=(\S+)`).FindStringSubmatch(s.log.String())
	if at == nil {
		t.Fatalf("no address in the log:\n%s", s.log.String())
	}
	nc, err := tls.Dial("tcp", at[1], agent)
	must(t, err)
	_, err = io.WriteString(nc, "from.graphite 7 -1\n")
	must(t, err)
	must(t, nc.Close())
	query := "/api/v1/query?query=" + url.QueryEscape(`{__name__="from.graphite"}`)
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if _, text := do(bare, "GET", query, "shale_reader", nil); strings.Contains(text, `"7"`) {
			break
		} else if time.Since(begin) > 20*time.Second {
			t.Fatalf("the point is not there: %s", text)
		}
	}

	// A stop waits neither for clients that say nothing nor for those in a handshake.
	silent, err := net.Dial("tcp", strings.TrimPrefix(plainURL, "http://"))
	must(t, err)
	defer silent.Close()
	must(t, s.stop())
}

// TestFilesOfDoorsMustFit: settings that would leave a listener without a guard are refused.
func TestFilesOfDoorsMustFit(t *testing.T) {
	for _, test := range []struct {
		settings []string
		want     string
	}{
		{[]string{"SHALE_GRAPHITE_TLS_LISTEN=:2013"}, "graphite-tls-listen: requires tls.cert-file, tls.client-ca-file and auth.tokens"},
		{[]string{"SHALE_GRAPHITE_PICKLE_TLS_LISTEN=:2014", "SHALE_TLS_CERT_FILE=a", "SHALE_TLS_KEY_FILE=b", "SHALE_AUTH_TOKENS=c"}, "graphite-pickle-tls-listen: requires"},
		{[]string{"SHALE_TLS_CERT_FILE=a"}, "must be set together"},
		{[]string{"SHALE_TLS_CLIENT_CA_FILE=a"}, "requires tls.cert-file"},
		{[]string{"SHALE_TLS_CLIENT_CERTS=require"}, "needs tls.client-ca-file"},
		{[]string{"SHALE_TLS_MIN_VERSION=1.1"}, "must be one of 1.2, 1.3"},
	} {
		if _, _, err := config.Load(config.Sources{Environ: test.settings}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v", test.settings, err)
		}
	}
}
