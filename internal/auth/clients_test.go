package auth

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/auth/certstest"
	"github.com/shaledb/shale/internal/model"
)

const clientFile = `tokens: [{name: t, sha256: ` + sumOfT + `, tenants: [t], rights: [read]}]
clients:
- {name: web, san: "dns:Web.Example", tenants: [w], rights: [write, read]}
- {name: spiffe, san: "uri:spiffe://example/agent", tenants: [s, x], rights: [write]}
- {name: mail, san: "email:ops@example.com", tenants: [m], rights: [read]}
- {name: ip, san: "ip:2001:DB8::0:1", tenants: [i], rights: [read]}
- {name: subject, subject: "CN=agent,O=Example", tenants: ["*"], rights: [write]}
`

const sumOfT = "e3b98a4da31a127d4bde6e43033f66ba274cab0eb7eb1c70ec41402bf6273dd8" // of the letter t

// TestCertificates: the names of a certificate give tenants and rights, and nothing else does.
func TestCertificates(t *testing.T) {
	w := newWorld(t)
	w.write(t, clientFile)
	if err := w.load(); err != nil {
		t.Fatal(err)
	}
	w.o.Now = time.Now
	ca := certstest.New(t, "clients")
	state := func(c x509.Certificate) *tls.ConnectionState {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		leaf := ca.Issue(t, &c).TLS(t).Leaf
		chains, err := leaf.Verify(x509.VerifyOptions{Roots: ca.Pool(), KeyUsages: c.ExtKeyUsage, CurrentTime: leaf.NotBefore.Add(time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: chains}
	}
	uri, _ := url.Parse("spiffe://example/agent")
	agent := pkix.Name{CommonName: "agent", Organization: []string{"Example"}}
	unverified := state(x509.Certificate{DNSNames: []string{"web.example"}})
	unverified.VerifiedChains = nil
	for _, test := range []struct {
		name   string
		state  *tls.ConnectionState
		needs  Right
		header http.Header
		who    string
		tenant string
		denied string
	}{
		{"dns", state(x509.Certificate{DNSNames: []string{"web.EXAMPLE"}}), Write, http.Header{}, "web", "w", ""},
		{"a wildcard", state(x509.Certificate{DNSNames: []string{"*.example"}}), Write, http.Header{}, "", "", invalid},
		{"uri", state(x509.Certificate{URIs: []*url.URL{uri}}), Write, http.Header{}, "spiffe", "s", ""},
		{"its second tenant", state(x509.Certificate{URIs: []*url.URL{uri}}), Write, http.Header{model.TenantHeader: {"x"}}, "spiffe", "x", ""},
		{"another tenant", state(x509.Certificate{URIs: []*url.URL{uri}}), Write, http.Header{model.TenantHeader: {"w"}}, "spiffe", "", tenant},
		{"email", state(x509.Certificate{EmailAddresses: []string{"ops@example.com"}}), Read, http.Header{}, "mail", "m", ""},
		{"the email as a DNS name", state(x509.Certificate{DNSNames: []string{"ops@example.com"}}), Read, http.Header{}, "", "", invalid},
		{"ip", state(x509.Certificate{IPAddresses: []net.IP{net.ParseIP("2001:db8::1")}}), Read, http.Header{}, "ip", "i", ""},
		{"subject", state(x509.Certificate{Subject: agent}), Write, http.Header{}, "subject", "", ""},
		{"a part of the subject", state(x509.Certificate{Subject: pkix.Name{CommonName: "agent"}}), Write, http.Header{}, "", "", invalid},
		{"a subject that contains it", state(x509.Certificate{Subject: pkix.Name{CommonName: "agent,O=Example"}}), Write, http.Header{}, "", "", invalid},
		{"a name as the subject", state(x509.Certificate{Subject: pkix.Name{CommonName: "web.example"}}), Write, http.Header{}, "", "", invalid},
		{"another right", state(x509.Certificate{DNSNames: []string{"web.example"}}), Delete, http.Header{}, "web", "", right},
		{"it has ended", state(x509.Certificate{DNSNames: []string{"web.example"}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)}), Read, http.Header{}, "web", "", expired},
		{"not verified", unverified, Write, http.Header{}, "", "", missing},
		{"no certificate", &tls.ConnectionState{}, Read, http.Header{}, "", "", missing},
		{"a token counts more", state(x509.Certificate{DNSNames: []string{"web.example"}}), Read, http.Header{"Authorization": {"Bearer t"}}, "t", "t", ""},
		{"also a wrong one", state(x509.Certificate{DNSNames: []string{"web.example"}}), Read, http.Header{"Authorization": {"Bearer x"}}, "", "", invalid},
	} {
		h := http.Header{}
		for name, values := range test.header {
			h[http.CanonicalHeaderKey(name)] = values
		}
		g, denied := w.keys.Load().admit(t.Context(), h, test.state, test.needs, time.Now())
		who, reason := "", ""
		if g != nil {
			who = g.Name
		}
		if denied != nil {
			reason = denied.Reason
		}
		if who != test.who || reason != test.denied || denied == nil && h.Get(model.TenantHeader) != test.tenant {
			t.Errorf("%s: %q of %q, %v", test.name, who, h.Get(model.TenantHeader), denied)
		}
		if test.needs != Write || len(test.header) > 0 {
			continue
		}
		// A connection without HTTP is for the same tenant.
		if got, err := w.AdmitConnection(test.state, Write); (err == nil) != (denied == nil) || err == nil && got != test.tenant {
			t.Errorf("%s: a connection is for %q, %v", test.name, got, err)
		}
	}
	for text, want := range map[string]string{
		"{san: 'web.example'}":                       "expected dns:NAME",
		"{san: 'cn:web'}":                            "expected dns:NAME",
		"{san: 'ip:1.2.3'}":                          "expected dns:NAME",
		"{san: 'dns:'}":                              "expected dns:NAME",
		"{san: 'dns:a', subject: 'CN=a'}":            "one of san and subject",
		"{name: y}":                                  "one of san and subject",
		"{san: 'dns:a', expires: x}":                 "expected lists",
		"{san: 'dns:a'}, {san: 'dns:A', name: more}": `client 2 ("more"): has the name "dns:a" of "x"`,
	} {
		text = strings.ReplaceAll(text, "{", "{tenants: [a], rights: [read], ")
		if !strings.Contains(text, "name: y") {
			text = strings.Replace(text, "{", "{name: x, ", 1)
		}
		if _, err := ParseKeys([]byte("clients: [" + text + "]")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
