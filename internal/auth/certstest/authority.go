package certstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	Cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Pair is a certificate with its key, in PEM.
type Pair struct{ Cert, Key []byte }

// New returns an authority.
func New(t testing.TB, name string) *Authority {
	t.Helper()
	key := newKey(t)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	c = parse(t, c, c, key, key)
	return &Authority{c, key}
}

// Server returns a certificate for 127.0.0.1 and localhost. Its subject is the name.
func (a *Authority) Server(t testing.TB, name string) Pair {
	return a.Issue(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// Client returns the certificate of a client with a DNS name.
func (a *Authority) Client(t testing.TB, dns string) Pair {
	return a.Issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: dns}, DNSNames: []string{dns}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// Issue signs a certificate. It sets the fields that every certificate needs, unless they are set.
func (a *Authority) Issue(t testing.TB, c *x509.Certificate) Pair {
	t.Helper()
	key := newKey(t)
	c.SerialNumber, c.KeyUsage = big.NewInt(time.Now().UnixNano()), x509.KeyUsageDigitalSignature
	if c.NotAfter.IsZero() {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(12*time.Hour)
	}
	c = parse(t, c, a.Cert, key, a.key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return Pair{toPEM("CERTIFICATE", c.Raw), toPEM("PRIVATE KEY", der)}
}

// PEM returns the certificate of the authority.
func (a *Authority) PEM() []byte { return toPEM("CERTIFICATE", a.Cert.Raw) }

// Pool returns a pool with the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Cert)
	return pool
}

// TLS returns the pair for a configuration.
func (p Pair) TLS(t testing.TB) tls.Certificate {
	t.Helper()
	c, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Write writes the pair to NAME.pem and NAME.key of a folder, and returns the names.
func (p Pair) Write(t testing.TB, dir, name string) (cert, key string) {
	t.Helper()
	return File(t, dir, name+".pem", p.Cert), File(t, dir, name+".key", p.Key)
}

// File writes a file, and returns its path.
func File(t testing.TB, dir, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func parse(t testing.TB, c, parent *x509.Certificate, key, by *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return c
}

func toPEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
