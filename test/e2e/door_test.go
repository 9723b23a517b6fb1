//go:build e2e

package e2e

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/auth"
	"github.com/shaledb/shale/internal/auth/certstest"
)

// patience is how long clients of the door may take. The machine may be busy with other tests.
const patience = 2 * time.Minute

// door is a server over TLS that asks for tokens and takes certificates.
type door struct {
	*server
	dir, ca, cert, key, tokens string
	more                       string // of the file of tokens
	client                     *http.Client
	graphiteTLS                string
	agent                      tls.Certificate
	clients, servers           *certstest.Authority
}

func (d *door) put(t *testing.T, revoked bool) {
	t.Helper()
	text := fmt.Sprintf("tokens:\n- {name: reader, sha256: %s, tenants: ['*'], rights: [read]}\n- {name: writer, sha256: %s, tenants: [team-a], rights: [write]}\n"+
		"- {name: loader, sha256: %s, tenants: [team-a], rights: [read, write]}\n- {name: old, sha256: %s, tenants: [team-a], rights: [write], expires: '2020-01-01T00:00:00Z'}\n",
		auth.Sum("shale_reader"), auth.Sum("shale_writer"), auth.Sum("shale_loader"), auth.Sum("shale_old"))
	if !revoked {
		text += fmt.Sprintf("- {name: gone, sha256: %s, tenants: [team-a], rights: [write]}\n", auth.Sum("shale_gone"))
	}
	writeFile(t, d.tokens, text+"clients: [{name: agent, san: 'dns:agent.example', tenants: [team-b], rights: [write]}, {name: grafana, san: 'dns:grafana.example', tenants: [team-a], rights: [read]}]\n"+d.more)
}

// openDoor starts the server. More is added to its file of tokens.
func openDoor(t *testing.T, more string) *door {
	t.Helper()
	dir := t.TempDir()
	d := &door{server: newServer(t, dir), dir: dir, tokens: filepath.Join(dir, "keys.yaml"), graphiteTLS: freeAddr(t), more: more}
	d.servers, d.clients = certstest.New(t, "servers"), certstest.New(t, "clients")
	cert, key := d.servers.Server(t, "shale").Write(t, dir, "server")
	d.ca = certstest.File(t, dir, "ca.pem", d.servers.PEM())
	pair := d.clients.Client(t, "agent.example")
	d.agent = pair.TLS(t)
	d.cert, d.key = pair.Write(t, dir, "agent")
	d.put(t, false)
	d.args = append(d.args, "--auth.tokens", d.tokens, "--tls.cert-file", cert, "--tls.key-file", key,
		"--tls.client-ca-file", certstest.File(t, dir, "clients.pem", d.clients.PEM()), "--graphite-tls-listen", d.graphiteTLS)
	d.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: d.servers.Pool()}}, Timeout: time.Minute}
	d.process = start(t, dir, "server", d.serving, d.args...)
	d.await(t, "the server", func() string {
		resp, err := d.client.Get("https://" + d.httpAddr + "/ready")
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return resp.Status
		}
		return ""
	})
	return d
}

// await repeats a check until it finds nothing wrong.
func (d *door) await(t *testing.T, what string, check func() string) {
	t.Helper()
	wrong := ""
	for began := time.Now(); time.Since(began) < patience; time.Sleep(200 * time.Millisecond) {
		if wrong = check(); wrong == "" {
			return
		}
	}
	t.Errorf("%s: %s", what, wrong)
}

// has reports whether a tenant has a value of a query.
func (d *door) has(tenant, path string) string {
	r, err := http.NewRequest(http.MethodGet, "https://"+d.httpAddr+path, nil)
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Authorization", "Bearer shale_reader")
	r.Header.Set("X-Scope-OrgID", tenant)
	resp, err := d.client.Do(r)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !bytes.Contains(text, []byte(`"result":[{`)) {
		return fmt.Sprintf("%s: %v %.300s", resp.Status, err, text)
	}
	return ""
}

// writes returns the status of a write with a token, or the error.
func (d *door) writes(token string) string {
	r, err := http.NewRequest(http.MethodPost, "https://"+d.httpAddr+"/api/v1/write/graphite", strings.NewReader("a.b 1 -1\n"))
	if err != nil {
		return err.Error()
	}
	r.SetBasicAuth("x", token)
	resp, err := d.client.Do(r)
	if err != nil {
		return err.Error()
	}
	_ = resp.Body.Close()
	return resp.Status[:3]
}

// revoke takes the token shale_gone out of the file, and waits until the server, which reads a file when it
// has settled, has read it.
func (d *door) revoke(t *testing.T) {
	t.Helper()
	d.put(t, true)
	d.await(t, "a revoked token", func() string {
		if s := d.writes("shale_gone"); s != "401" {
			return s
		}
		return ""
	})
}

// prometheus runs a real Prometheus that writes with some settings. It returns its address.
func (d *door) prometheus(t *testing.T, name, settings string) string {
	t.Helper()
	dir := filepath.Join(d.dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	conf := writeFile(t, filepath.Join(dir, "prometheus.yml"), fmt.Sprintf(`
global: {scrape_interval: 1s, external_labels: {sender: %q}}
scrape_configs: [{job_name: self, static_configs: [{targets: ['%s']}]}]
remote_write:
- url: https://%s/api/v1/write
  queue_config: {batch_send_deadline: 1s}
%s`, name, addr, d.httpAddr, settings))
	p := start(t, dir, name, "prometheus", "--config.file="+conf, "--storage.tsdb.path="+filepath.Join(dir, "tsdb"), "--web.listen-address="+addr, "--storage.remote.flush-deadline=1s")
	p.waitFor(t, "http://"+addr+"/-/ready")
	return addr
}

// TestDoor lets real clients in with tokens, passwords and certificates, and keeps out those whose token is
// wrong, has expired, is missing, is revoked, or is of another tenant.
func TestDoor(t *testing.T) {
	t.Parallel()
	if *serverKind != "shale" {
		t.Skip("it is about tokens")
	}
	d := openDoor(t, "")
	tlsOnly := "  tls_config: {ca_file: " + d.ca + "}\n"
	withCert := "  tls_config: {ca_file: " + d.ca + ", cert_file: " + d.cert + ", key_file: " + d.key + "}\n"
	bearer := func(token string) string { return "  authorization: {credentials: " + token + "}\n" + tlsOnly }
	for _, c := range []struct{ name, settings, tenant string }{
		{"bearer", bearer("shale_writer"), "team-a"},
		{"basic", "  basic_auth: {username: any, password: shale_writer}\n" + tlsOnly, "team-a"},
		{"certificate", withCert, "team-b"},
	} {
		d.prometheus(t, c.name, c.settings)
		d.await(t, "Prometheus with "+c.name, func() string {
			return d.has(c.tenant, "/api/v1/query?query="+url.QueryEscape(fmt.Sprintf(`count({sender=%q})`, c.name)))
		})
	}
	for _, c := range []struct{ name, settings, status string }{
		{"wrong", bearer("shale_wrong"), "401"}, {"expired", bearer("shale_old"), "401"}, {"missing", tlsOnly, "401"}, {"reads", bearer("shale_reader"), "403"},
	} {
		p := d.prometheus(t, c.name, c.settings)
		d.await(t, "Prometheus with "+c.name, func() string {
			text, err := os.ReadFile(filepath.Join(d.dir, c.name, c.name+".log"))
			if err != nil {
				return err.Error()
			}
			if !strings.Contains(string(text), "HTTP status "+c.status) {
				return p + " was not told " + c.status
			}
			return ""
		})
		for _, tenant := range []string{"team-a", "team-b", "anonymous"} {
			if d.has(tenant, "/api/v1/query?query="+url.QueryEscape(fmt.Sprintf(`count({sender=%q})`, c.name))) == "" {
				t.Errorf("samples of the Prometheus with %s were stored for %s", c.name, tenant)
			}
		}
	}
	t.Run("revoked", func(t *testing.T) {
		if s := d.writes("shale_gone"); s != "204" && s != "200" {
			t.Errorf("before: %s", s)
		}
		d.revoke(t)
	})
	t.Run("Graphite over TLS", func(t *testing.T) {
		send := func(certs ...tls.Certificate) error {
			nc, err := tls.Dial("tcp", d.graphiteTLS, &tls.Config{RootCAs: d.servers.Pool(), ServerName: "localhost", Certificates: certs})
			if err != nil {
				return err
			}
			defer nc.Close()
			_, err = io.WriteString(nc, "from.graphite 7 -1\n")
			return err
		}
		if err := send(d.agent); err != nil {
			t.Error(err)
		}
		d.await(t, "a point", func() string {
			return d.has("team-b", "/api/v1/query?query="+url.QueryEscape(`{__name__="from.graphite"}`))
		})
		stranger := certstest.New(t, "strangers").Client(t, "agent.example").TLS(t)
		_, _ = send(), send(stranger) // refused in the handshake, or once the certificate is seen
		if d.has("team-a", "/api/v1/query?query="+url.QueryEscape(`{__name__="from.graphite"}`)) == "" {
			t.Error("the point of a stranger was stored")
		}
	})
}
