package router

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const everyKey = `alpha:
  listen: 127.0.0.1:22121
  hash: murmur
  hash_tag: "{}"
  distribution: modula
  timeout: 400
  backlog: 1024
  client_connections: 100
  redis: false
  tcpkeepalive: true
  preconnect: true
  auto_eject_hosts: true
  server_connections: 3
  server_retry_timeout: 2000
  server_failure_limit: 1
  servers:
   - 127.0.0.1:11212:1 second
   - 127.0.0.1:11211:2
   - 127.0.0.1:11213:1
   - /tmp/memcached.sock:4 socket

beta:
  listen: /tmp/router.sock 0666
  servers:
   - 127.0.0.1:11211:1
`

func TestConfig(t *testing.T) {
	pools, err := ParseConfig([]byte(everyKey))
	if err != nil {
		t.Fatal(err)
	}
	want := []Pool{
		{Name: "alpha", Listen: "127.0.0.1:22121", Hash: "murmur", Tag: "{}", Distribution: "modula", Timeout: 400 * time.Millisecond, Backlog: 1024, KeepAlive: true, Preconnect: true, Eject: true,
			Connections: 3, RetryTimeout: 2 * time.Second, FailureLimit: 1, Servers: []Server{
				{"second", "127.0.0.1:11212", 1, "127.0.0.1:11212:1"}, {"socket", "/tmp/memcached.sock", 4, "/tmp/memcached.sock:4"},
				{"127.0.0.1", "127.0.0.1:11211", 2, "127.0.0.1:11211:2"}, {"127.0.0.1:11213", "127.0.0.1:11213", 1, "127.0.0.1:11213:1"},
			}},
		{Name: "beta", Listen: "/tmp/router.sock", Perm: 0o666, Hash: "fnv1a_64", Distribution: "ketama", Backlog: 512, Connections: 1, RetryTimeout: 30 * time.Second, FailureLimit: 2,
			Servers: []Server{{"127.0.0.1", "127.0.0.1:11211", 1, "127.0.0.1:11211:1"}}},
	}
	if d := cmp.Diff(want, pools); d != "" {
		t.Errorf("-want +got: %s", d)
	}
}

// bad are configurations that twemproxy refuses, and so does the router.
var bad = map[string]string{
	"":                                "expected pools",
	"a: 1\n":                          "expected keys",
	"a:\n  hash: md5\n":               "listen is missing",
	"a:\n  listen: 127.0.0.1:1\n":     "no servers",
	"a:\n  listen: x\n":               "HOST:PORT",
	"a:\n  listen: 127.0.0.1:99999\n": "expected a port",
	"a:\n  lisen: 127.0.0.1:1\n":      "no such directive",
	"a:\n  listen: 127.0.0.1:1\n  hash: sha\n  servers:\n   - 127.0.0.1:1:1\n":                                               "not a hash",
	"a:\n  listen: 127.0.0.1:1\n  hash_tag: \"{\"\n  servers:\n   - 127.0.0.1:1:1\n":                                         "two characters",
	"a:\n  listen: 127.0.0.1:1\n  distribution: jump\n  servers:\n   - 127.0.0.1:1:1\n":                                      "not a distribution",
	"a:\n  listen: 127.0.0.1:1\n  timeout: soon\n  servers:\n   - 127.0.0.1:1:1\n":                                           "expected a number",
	"a:\n  listen: 127.0.0.1:1\n  preconnect: yes\n  servers:\n   - 127.0.0.1:1:1\n":                                         "true or false",
	"a:\n  listen: 127.0.0.1:1\n  server_connections: 0\n  servers:\n   - 127.0.0.1:1:1\n":                                   "expected 1 to",
	"a:\n  listen: 127.0.0.1:1\n  servers:\n   - 127.0.0.1:1\n":                                                              "expected HOST:PORT:WEIGHT",
	"a:\n  listen: 127.0.0.1:1\n  servers:\n   - 127.0.0.1:1:0\n":                                                            "weight",
	"a:\n  listen: 127.0.0.1:1\n  servers:\n   - 127.0.0.1:1:1 x\n   - 127.0.0.1:2:1 x\n":                                    "the name x",
	"a:\n  listen: 127.0.0.1:1\n  servers:\n   - 127.0.0.1:1:1\nb:\n  listen: 127.0.0.1:1\n  servers:\n   - 127.0.0.1:1:1\n": "same address",
	"a:\n  listen: 127.0.0.1:1\n  listen: 127.0.0.1:2\n  servers:\n   - 127.0.0.1:1:1\n":                                     "",
}

func TestBadConfig(t *testing.T) {
	_, missing := exec.LookPath("nutcracker")
	for text, want := range bad {
		if _, err := ParseConfig([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		if missing != nil {
			continue
		}
		file := filepath.Join(t.TempDir(), "c.yml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		// It exits with 0 even so.
		if out, err := exec.Command("nutcracker", "-t", "-c", file).CombinedOutput(); !strings.Contains(string(out), "is invalid") {
			t.Errorf("twemproxy takes %q: %s, %v", text, out, err)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add(everyKey)
	for text := range bad {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		pools, err := ParseConfig([]byte(text))
		for _, p := range pools {
			if len(p.Servers) > 100 {
				return
			}
			if _, err := newState(p, nil); err != nil {
				t.Errorf("%+v: %v", p, err)
			}
		}
		if err == nil && len(pools) == 0 {
			t.Error("no pools and no error")
		}
	})
}

func FuzzRequest(f *testing.F) {
	for _, s := range []string{"get a", "gets a b c", "gat 0 a", "set k 1 -1 5 noreply", "cas k 0 0 3 7", "delete k 0 noreply", "incr k 1", "touch k 5", "mg k v q O12", "ms k 5 T0 q", "mn", "quit", "version",
		"set k 0 0 99999999999999999999", "get " + strings.Repeat("x", 251), "  get   a  "} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r := newRequest()
		r.reset()
		r.parse(line)
		if r.bad != "" {
			return
		}
		if r.op != opQuit && r.op != opMetaNoop {
			sent := appendRequest(nil, r, nil)
			if n := strings.Count(string(sent), "\n"); n != strings.Count(string(line), "\n")+1 && !strings.Contains(string(line), "\n") {
				t.Errorf("%q is sent as %q", line, sent)
			}
		}
		if r.size > maxBody {
			t.Errorf("%q declares %d bytes", line, r.size)
		}
	})
}
