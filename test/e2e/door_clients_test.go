//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/shaledb/shale/internal/auth/issuertest"
)

// credential is what a client shows, and what it is told.
type credential struct {
	name, token, tenant string
	// refused is the status; empty: it is let in. says is a part of the text of the response.
	refused, says string
}

// credentials are tokens and JWTs: right, wrong, expired, missing, revoked, of another tenant. The right is
// read or write.
func credentials(t *testing.T, issuer *issuertest.Issuer, right, token string) []credential {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	id := rand.Text()
	issuer.Publish(id, key.Public())
	jwt := func(key *rsa.PrivateKey, tenant, scope string, life time.Duration) string {
		return issuertest.Sign(t, jose.RS256, key, id, map[string]any{
			"iss": issuer.URL, "aud": "shale", "sub": "mary", "iat": time.Now().Unix(), "exp": time.Now().Add(life).Unix(), "tenants": []string{tenant}, "scope": scope,
		})
	}
	other := map[string]string{"read": "write", "write": "read"}[right]
	return []credential{
		{"token", token, "team-a", "", ""},
		{"JWT", jwt(key, "team-a", "openid "+right, time.Hour), "team-a", "", ""},
		{"wrong token", "shale_wrong", "team-a", "401", "not known"},
		{"expired token", "shale_old", "team-a", "401", "has expired"},
		{"no token", "", "team-a", "401", "a token is required"},
		{"revoked token", "shale_gone", "team-a", "401", "not known"},
		{"expired JWT", jwt(key, "team-a", right, -time.Hour), "team-a", "401", "expired"},
		{"JWT of a stranger", jwt(stranger, "team-a", right, time.Hour), "team-a", "401", "signature"},
		{"JWT for another tenant", jwt(key, "team-b", right, time.Hour), "team-a", "403", "is not for the tenant"},
		{"JWT without the right", jwt(key, "team-a", other, time.Hour), "team-a", "403", "lacks the right"},
	}
}

// TestDoorClients lets logcli, Promtail's client, the OpenTelemetry SDK, Prometheus and shale load in with
// tokens and JWTs of a real issuer, and keeps out those whose token is wrong, has expired, is missing, is
// revoked, is for another tenant or lacks the right.
func TestDoorClients(t *testing.T) {
	t.Parallel()
	if *serverKind != "shale" {
		t.Skip("it is about tokens")
	}
	issuer := issuertest.New(t)
	readers, writers := credentials(t, issuer, "read", "shale_reader"), credentials(t, issuer, "write", "shale_writer")
	d := openDoor(t, fmt.Sprintf("oidc: {issuer: %q, audience: shale, tenants_claim: tenants, rights_claim: scope}\n", issuer.URL))
	d.revoke(t)
	base := "https://" + d.httpAddr
	run := func(env []string, program string, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	check := func(t *testing.T, c credential, out string, err error) {
		t.Helper()
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%s: %v\n%.2000s", c.name, err, out)
		case c.refused != "" && (err == nil || !strings.Contains(out, c.refused) && !strings.Contains(out, c.says)):
			t.Errorf("%s: %v, want a complaint with %s or %q:\n%.2000s", c.name, err, c.refused, c.says, out)
		}
	}

	t.Run("OpenTelemetry", func(t *testing.T) {
		program := goBuild(t, otelModule, ".")
		for i, c := range writers {
			headers := "X-Scope-OrgID=" + c.tenant
			if c.token != "" {
				headers += ",Authorization=" + url.PathEscape("Bearer "+c.token)
			}
			service := fmt.Sprint("door-", i)
			out, err := run([]string{"OTEL_EXPORTER_OTLP_CERTIFICATE=" + d.ca, "OTEL_EXPORTER_OTLP_HEADERS=" + headers}, program,
				"-service", service, "-records", "10", "-logs", base+"/otlp/v1/logs", "-metrics", base+"/otlp/v1/metrics")
			check(t, c, out, err)
			stored := "/loki/api/v1/query_range?query=" + url.QueryEscape(fmt.Sprintf("{service_name=%q}", service))
			if c.refused == "" {
				d.await(t, "lines with "+c.name, func() string { return d.has(c.tenant, stored) })
			} else if d.has("team-a", stored) == "" || d.has("team-b", stored) == "" {
				t.Errorf("%s: the lines are stored", c.name)
			}
		}
	})
	t.Run("Promtail", func(t *testing.T) {
		promtail := newPromtail(t)
		for i, c := range writers {
			service := fmt.Sprint("promtail-", i)
			out, err := run(nil, promtail, "-url", base+"/loki/api/v1/push", "-tenant", c.tenant, "-token", c.token, "-ca", d.ca, "-service", service)
			check(t, c, out, err)
			stored := "/loki/api/v1/query_range?query=" + url.QueryEscape(fmt.Sprintf("{service_name=%q}", service))
			if c.refused == "" {
				d.await(t, "lines with "+c.name, func() string { return d.has(c.tenant, stored) })
			} else if d.has("team-a", stored) == "" || d.has("team-b", stored) == "" {
				t.Errorf("%s: the lines are stored", c.name)
			}
		}
	})
	t.Run("logcli", func(t *testing.T) {
		logcli := newLogcli(t, func() string { return base })
		r, err := http.NewRequest(http.MethodPost, base+"/loki/api/v1/push", bytes.NewReader(fmt.Appendf(nil, `{"streams":[{"stream":{"app":"door"},"values":[["%d","come in"]]}]}`, time.Now().UnixNano())))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.SetBasicAuth("any", "shale_writer")
		resp, err := d.client.Do(r)
		if err != nil || resp.StatusCode != http.StatusNoContent {
			t.Fatal(resp, err)
		}
		_ = resp.Body.Close()
		ask := func(c credential, login ...string) {
			t.Helper()
			out, err := run(nil, logcli.program, append([]string{"--addr", base, "--quiet", "--ca-cert", d.ca, "--org-id", c.tenant, "query", `{app="door"}`}, login...)...)
			check(t, c, out, err)
			if strings.Contains(out, "come in") != (c.refused == "") {
				t.Errorf("%s: %.500s", c.name, out)
			}
		}
		for _, c := range readers {
			login := []string{"--bearer-token", c.token}
			if c.token == "" {
				login = nil
			}
			ask(c, login...)
		}
		ask(credential{name: "password", tenant: "team-a"}, "--username", "any", "--password", "shale_reader")
		ask(credential{name: "wrong password", tenant: "team-a", refused: "401", says: "not known"}, "--username", "shale_reader", "--password", "any")
	})
	t.Run("shale load", func(t *testing.T) {
		for _, c := range []credential{{"token", "shale_loader", "team-a", "", ""}, {"wrong token", "shale_wrong", "team-a", "401", "not known"}, {"another tenant's", "shale_loader", "team-b", "403", "is not for the tenant"}} {
			file := writeFile(t, filepath.Join(t.TempDir(), "token"), c.token+"\n")
			out, err := run([]string{"SSL_CERT_FILE=" + d.ca}, d.program, "load", "remote-write", "--token-file", file, "--tenant", c.tenant, "--url", base, "--query-url", base,
				"--targets", "2", "--metrics", "2", "--series", "5", "--rounds", "3", "--rate", "0", "--start=-1m", "--verify", "20", "--verify-counts", "--quiet")
			check(t, c, out, err)
		}
	})
	t.Run("Prometheus", func(t *testing.T) {
		token := writers[1].token
		d.prometheus(t, "jwt", "  authorization: {credentials: "+token+"}\n  tls_config: {ca_file: "+d.ca+"}\n")
		d.await(t, "Prometheus with a JWT", func() string {
			return d.has("team-a", "/api/v1/query?query="+url.QueryEscape(`count({sender="jwt"})`))
		})
	})
}
