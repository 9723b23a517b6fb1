package auth

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// fileClient is a client with a certificate, as the file has it.
type fileClient struct {
	Name    string   `yaml:"name"`
	SAN     string   `yaml:"san"`
	Subject string   `yaml:"subject"`
	Tenants []string `yaml:"tenants"`
	Rights  []string `yaml:"rights"`
}

// The kinds of names that a certificate can have, as the file writes them before a colon.
const (
	sanDNS     = "dns:"
	sanURI     = "uri:"
	sanEmail   = "email:"
	sanIP      = "ip:"
	subjectKey = "subject:"
)

// grant checks the fields of a client, and returns the key that its certificate is found by.
func (f *fileClient) grant() (*Grant, string, error) {
	g, err := newGrant(f.Name, f.Tenants, f.Rights)
	if err != nil {
		return nil, "", err
	}
	g.by = byCertificate
	switch {
	case (f.SAN == "") == (f.Subject == ""):
		return nil, "", errors.New("expected one of san and subject")
	case f.Subject != "":
		return g, subjectKey + f.Subject, nil
	}
	key, err := parseSAN(f.SAN)
	return g, key, err
}

// parseSAN returns a name as [keysOf] spells it.
func parseSAN(text string) (string, error) {
	kind, name, found := strings.Cut(text, ":")
	switch kind += ":"; {
	case !found || name == "":
	case kind == sanDNS:
		return kind + strings.ToLower(name), nil
	case kind == sanURI || kind == sanEmail:
		return kind + name, nil
	case kind == sanIP:
		if ip := net.ParseIP(name); ip != nil {
			return kind + ip.String(), nil
		}
	}
	return "", fmt.Errorf("san: expected dns:NAME, uri:URI, email:ADDRESS or ip:ADDRESS, got %.60q", text)
}

// keysOf returns the names of a certificate. A wildcard is a name like any other: it is equal only to itself.
func keysOf(c *x509.Certificate) (keys []string) {
	for _, name := range c.DNSNames {
		keys = append(keys, sanDNS+strings.ToLower(name))
	}
	for _, u := range c.URIs {
		keys = append(keys, sanURI+u.String())
	}
	for _, a := range c.EmailAddresses {
		keys = append(keys, sanEmail+a)
	}
	for _, ip := range c.IPAddresses {
		keys = append(keys, sanIP+ip.String())
	}
	return append(keys, subjectKey+c.Subject.String())
}

// FindCertificate returns the grant of a verified certificate, or nil. If it has the names of several
// clients, the first name counts that a client has, and the subject comes last.
func (k *Keys) FindCertificate(c *x509.Certificate) *Grant {
	if len(k.byName) == 0 {
		return nil
	}
	for _, key := range keysOf(c) {
		if g := k.byName[key]; g != nil {
			return g
		}
	}
	return nil
}

// certificateOf returns the certificate of a client that the handshake has verified, or nil.
func certificateOf(s *tls.ConnectionState) *x509.Certificate {
	if s == nil || len(s.VerifiedChains) == 0 {
		return nil
	}
	return s.VerifiedChains[0][0]
}

// admitCertificate finds the grant of a certificate. A connection may outlive its certificate.
func (k *Keys) admitCertificate(c *x509.Certificate, now time.Time) (*Grant, *Denied) {
	g := k.FindCertificate(c)
	switch {
	case g == nil:
		return nil, unknown(invalid, fmt.Sprintf("no client of the file auth.tokens has a name of this certificate: %.300q", keysOf(c)))
	case now.After(c.NotAfter):
		return g, unknown(expired, fmt.Sprintf("the certificate of %q has ended at %s", g.Name, c.NotAfter.UTC().Format(time.RFC3339)))
	}
	return g, nil
}

// AdmitConnection returns the tenant of a connection that is not HTTP, by its certificate: the first of the
// client's, or empty if it may name any.
func (g *Guard) AdmitConnection(s *tls.ConnectionState, needs Right) (tenant string, err error) {
	c := certificateOf(s)
	if c == nil {
		return "", g.count(unknown(missing, "the client has no certificate"))
	}
	grant, denied := g.keys.Load().admitCertificate(c, g.o.Now())
	if denied == nil {
		denied = grant.check(needs)
	}
	if denied != nil {
		return "", g.count(denied)
	}
	if len(grant.Tenants) > 0 {
		tenant = grant.Tenants[0]
	}
	return tenant, nil
}

// count counts a refusal.
func (g *Guard) count(d *Denied) *Denied {
	g.refused.WithLabelValues(d.Reason).Inc()
	return d
}

// check returns a refusal if the grant lacks a right.
func (g *Grant) check(needs Right) *Denied {
	if g.May(needs) {
		return nil
	}
	return &Denied{http.StatusForbidden, right, fmt.Sprintf("%s lacks the right %s", g, needs)}
}
