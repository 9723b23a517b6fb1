package relay

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// secure returns a certificate for 127.0.0.1 with its key, and files with both. It is its own authority.
func secure(t *testing.T) (c tls.Certificate, cert, key string) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	c = s.TLS.Certificates[0]
	secret, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: c.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c, cert, key
}

// TestTLS: points go to a destination that asks for a certificate. A connection that is cut off, without the
// last message of TLS, confirms nothing.
func TestTLS(t *testing.T) {
	own, cert, key := secure(t)
	var served atomic.Int64
	c := listen(t, func(c *carbon, nc *net.TCPConn) {
		s := tls.Server(nc, &tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAnyClientCert})
		var text bytes.Buffer
		if _, err := text.ReadFrom(s); err != nil || text.Len() == 0 {
			return
		}
		if served.Add(1) <= 2 {
			return // the socket is closed alone, as when a process dies
		}
		c.mu.Lock()
		for line := range strings.Lines(text.String()) {
			c.got[strings.TrimSpace(line)]++
		}
		c.mu.Unlock()
		_ = s.Close()
	})
	conf := conf(t, "DESTINATION_PROTOCOL = line", "DESTINATION_TRANSPORT = ssl", "DESTINATION_SSL_CA = "+cert, "DESTINATIONS = "+c.address())
	r := open(t, vfs.NewMem(), func(o *Options) { o.Cert, o.Key = cert, key })
	q := use(t, r, conf)[0]
	c.expect(t, add(q, "a.b", 1000))
	empty(t, q)
	if n := testutil.ToFloat64(q.count.failures); n < 2 {
		t.Errorf("%v failures are counted, want those of 2 cut connections", n)
	}
}

func TestTLSRefuses(t *testing.T) {
	_, cert, key := secure(t)
	for _, c := range []struct{ ca, cert, key, want string }{
		{"/nonexistent", "", "", "DESTINATION_SSL_CA: open /nonexistent"},
		{key, "", "", "has no certificate in PEM"},
		{cert, cert, cert, "graphite.relay-tls-cert-file and graphite.relay-tls-key-file"},
	} {
		r := open(t, vfs.NewMem(), func(o *Options) { o.Cert, o.Key = c.cert, c.key })
		_, _, err := r.Use(conf(t, "DESTINATION_TRANSPORT = ssl", "DESTINATION_SSL_CA = "+c.ca, "DESTINATIONS = a:1"))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v", c, err)
		}
	}
}
