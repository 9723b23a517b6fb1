package memcache

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/memcache/hash"
	"github.com/shaledb/shale/internal/memcache/memcachetest"
	"github.com/shaledb/shale/internal/memcache/meta"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newClient(t testing.TB, o Options) *Client {
	t.Helper()
	if o.MaxValue == 0 {
		o.MaxValue = 1 << 20
	}
	if o.MaxWait == 0 {
		o.MaxWait = 5 * time.Second
	}
	o.Registerer = prometheus.NewRegistry()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func soon() time.Time { return time.Now().Add(5 * time.Second) }

func get(key string) Call {
	return Call{Request: meta.Request{Verb: meta.Get, Key: []byte(key), Flags: meta.Flags{Letters: meta.Of("vq")}}}
}

func set(key, value string) Call {
	return Call{Request: meta.Request{Verb: meta.Set, Key: []byte(key)}, Value: []byte(value)}
}

// fill stores keys, and found counts those that are there.
func (c *Client) fill(t testing.TB, keys int) {
	t.Helper()
	for i := range keys {
		call := []Call{set(fmt.Sprint("key", i), fmt.Sprint("value", i))}
		if c.Write(context.Background(), soon(), call); call[0].Err != nil {
			t.Fatal(call[0].Err)
		}
	}
}

func (c *Client) found(t testing.TB, keys int) (found int, errs map[error]int) {
	t.Helper()
	calls, errs := make([]Call, keys), map[error]int{}
	for i := range calls {
		calls[i] = get(fmt.Sprint("key", i))
	}
	c.Read(context.Background(), soon(), calls)
	for i, call := range calls {
		switch {
		case call.Err != nil:
			errs[call.Err]++
		case call.Code != meta.VA:
		case string(call.Data) != fmt.Sprint("value", i):
			t.Fatalf("key %d has %q", i, call.Data)
		default:
			found++
		}
	}
	return found, errs
}

// await waits until all servers are used and at least so many keys are found: a busy machine may be late.
func (c *Client) await(t testing.TB, keys int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		n, errs := c.found(t, 600)
		if n >= keys && len(errs) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d keys are found, expected %d; errors: %v", n, keys, errs)
		}
	}
}

// TestThreeServers: keys lie on all servers, for each kind of hash. A server that is killed costs its share.
// It is left alone, and used again when it is back.
func TestThreeServers(t *testing.T) {
	var servers []*memcachetest.Server
	var addrs []string
	for range 3 {
		s := memcachetest.Start(t)
		servers, addrs = append(servers, s), append(addrs, s.Addr)
	}
	const keys = 600
	for _, kind := range hash.Kinds() {
		c := newClient(t, Options{Servers: addrs, Hash: kind})
		c.fill(t, keys)
		c.await(t, keys)
	}
	c := newClient(t, Options{Servers: addrs})
	c.await(t, keys)
	servers[1].Kill()
	var left int
	for range 2 * leastOutcomes {
		left, _ = c.found(t, keys)
	}
	if left < keys/2 || left > keys*5/6 {
		t.Errorf("%d of %d keys are left without one of three servers", left, keys)
	}
	out := 0
	for _, s := range c.Status() {
		if s.State != Closed {
			out++
		}
	}
	if _, errs := c.found(t, keys); out != 1 || errs[ErrOut] != keys-left {
		t.Errorf("%d servers are out, errors %v", out, errs)
	}
	servers[1].Restart()
	c.await(t, left)
	for _, s := range c.Status() {
		if s.Version == "" || s.ItemMax != 1<<20 {
			t.Errorf("%+v", s)
		}
	}
}

// TestLargestItem: the limit of a server is learnt, and a value beyond it is not sent. Any value below it is
// taken.
func TestLargestItem(t *testing.T) {
	s := memcachetest.Start(t, "-I", "2m", "-m", "100")
	c := newClient(t, Options{Servers: []string{s.Addr}, MaxValue: 4 << 20})
	c.fill(t, 1) // learns
	for _, n := range []int{2 << 20, 2<<20 - itemOverhead - 4} {
		call := []Call{set("large", string(make([]byte, n)))}
		if c.Write(context.Background(), soon(), call); !errors.Is(call[0].Err, ErrTooLarge) {
			t.Errorf("%d bytes: got %v", n, call[0].Err)
		}
	}
	call := []Call{set("large", string(make([]byte, 2<<20-itemOverhead-5)))}
	if c.Write(context.Background(), soon(), call); call[0].Err != nil {
		t.Errorf("the server refuses a value within its limit: %v", call[0].Err)
	}
	bad := []Call{get("a key"), get("key0"), get(string(make([]byte, 300)))}
	if c.Read(context.Background(), soon(), bad); bad[0].Err != ErrKey || bad[2].Err != ErrKey || string(bad[1].Data) != "value0" {
		t.Errorf("%+v", bad)
	}
}

// TestSlowServer: a server that is slower than it was is not waited for, and soon left alone.
func TestSlowServer(t *testing.T) {
	p := memcachetest.NewProxy(t, memcachetest.Start(t).Addr)
	bound := time.Duration(0)
	c := newClient(t, Options{Servers: []string{p.Addr}, MaxWait: time.Second, Bound: func() time.Duration { return bound }})
	c.fill(t, 1)
	if w := c.Wait([]byte("key0")); w != time.Second {
		t.Errorf("a server of which little is known is waited for %v", w)
	}
	bound = 50 * time.Millisecond
	if w := c.Wait([]byte("key0")); w != bound {
		t.Errorf("a bound of %v makes a wait of %v", bound, w)
	}
	for range 40 {
		c.found(t, 1)
	}
	wait := c.Wait([]byte("key0"))
	if wait < leastPatience || wait > bound {
		t.Errorf("a fast server is waited for %v", wait)
	}
	p.Inject(memcachetest.Faults{Delay: 300 * time.Millisecond})
	begun, asked := time.Now(), 0
	for c.Status()[0].State == Closed && asked < 200 {
		c.found(t, 1)
		asked++
	}
	// The response that came late is known, and makes the server worth more of a wait, up to the bound.
	if took := time.Since(begun); asked == 200 || took > time.Duration(asked)*250*time.Millisecond {
		t.Errorf("%d reads took %v", asked, took)
	}
	if n := testutil.ToFloat64(c.ring.Load().nodes[0].m.results[resultTimeout]); n < leastOutcomes {
		t.Errorf("%.0f time-outs are counted", n)
	}
}

// TestNames: a name stands for all of its addresses, and those that come and go are noticed.
func TestNames(t *testing.T) {
	s := memcachetest.Start(t)
	_, port, _ := net.SplitHostPort(s.Addr)
	var addrs atomic.Pointer[[]string]
	addrs.Store(&[]string{"127.0.0.1"})
	c := newClient(t, Options{
		Servers: []string{"dns+cache.example:" + port}, ResolveEvery: 5 * time.Millisecond,
		Resolve: func(_ context.Context, host string) ([]string, error) {
			if host != "cache.example" {
				t.Errorf("%s is resolved", host)
			}
			if list := *addrs.Load(); list != nil {
				return list, nil
			}
			return nil, errors.New("no answer")
		},
	})
	await := func(n int) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); len(c.Status()) != n; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d servers, expected %d", len(c.Status()), n)
			}
		}
	}
	await(1)
	c.fill(t, 10)
	addrs.Store(&[]string{"127.0.0.1", "127.0.0.2"})
	await(2)
	addrs.Store(&[]string{"127.0.0.1"})
	await(1)
	addrs.Store(new([]string))
	for end := time.Now().Add(10 * time.Second); testutil.ToFloat64(c.m.failedLookups) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no lookup fails")
		}
	}
	if n, errs := c.found(t, 10); n != 10 {
		t.Errorf("%d of 10 keys, %v: a name that cannot be resolved loses its servers", n, errs)
	}
	if n := testutil.CollectAndCount(c.m.dials); n != 1 {
		t.Errorf("metrics of %d servers", n)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, servers := range [][]string{nil, {"host"}, {"host:port"}, {":11211"}, {"dns+"}, {"dnssrv+host:11211"}, {"a:1,b:1"}} {
		if _, err := New(Options{Servers: servers}); err == nil {
			t.Errorf("%q is taken", servers)
		}
	}
	if _, err := New(Options{Servers: []string{"a:1"}, Hash: "crc"}); err == nil {
		t.Error("an unknown hash is taken")
	}
	c := newClient(t, Options{Servers: []string{"dns+nowhere.invalid:1"}, Resolve: func(context.Context, string) ([]string, error) { return nil, errors.New("no") }})
	if _, errs := c.found(t, 1); errs[ErrNoServer] != 1 || c.Wait([]byte("k")) != 0 {
		t.Errorf("errors %v", errs)
	}
}

// TestTLS uses a server with a certificate of its own.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	for name, block := range map[string]*pem.Block{"cert": {Type: "CERTIFICATE", Bytes: der}, "key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		roots.AppendCertsFromPEM(pem.EncodeToMemory(block))
	}
	s := memcachetest.Start(t, "-Z", "-o", "ssl_chain_cert="+filepath.Join(dir, "cert")+",ssl_key="+filepath.Join(dir, "key"))
	c := newClient(t, Options{Servers: []string{s.Addr}, TLS: &tls.Config{RootCAs: roots}})
	c.fill(t, 10)
	if n, errs := c.found(t, 10); n != 10 {
		t.Errorf("%d of 10 keys, %v", n, errs)
	}
	stranger := newClient(t, Options{Servers: []string{s.Addr}, TLS: &tls.Config{}})
	if n, errs := stranger.found(t, 10); n != 0 || len(errs) == 0 {
		t.Error("a certificate of an unknown authority is taken")
	}
}

func TestVersions(t *testing.T) {
	for version, want := range map[string]bool{"1.4.39": false, "1.5.22": false, "1.6.0": true, "1.6.18": true, "2.0": true, "tunnel": true} {
		if speaksMeta(version) != want {
			t.Errorf("version %s: %t", version, !want)
		}
	}
}
