package hash_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/memcache/hash"
	"github.com/shaledb/shale/internal/memcache/memcachetest"
	"github.com/shaledb/shale/internal/memcache/stats"
)

var (
	rewrite = flag.Bool("rewrite", false, "write the golden file")
	keys    = flag.Int("keys", 20_000, "keys to place by the real twemproxy")
)

// pool is a pool of a test. Names of its servers are aliases, so that a test may use any ports.
type pool struct {
	Distribution, Hash, Tag string
	Names                   []string
	Weights                 []int
}

// pools are all pairs of hashes and distributions, and weights, tags and few servers.
func pools() (all []pool) {
	names := []string{"cache-a", "cache-b", "c", "cache-long-name", "10.0.0.9"}
	even, uneven := []int{1, 1, 1, 1, 1}, []int{1, 7, 2, 100, 3}
	for _, h := range hash.Hashes() {
		all = append(all, pool{"ketama", h, "", names, even}, pool{"modula", h, "", names, even})
	}
	return append(all, pool{"ketama", "fnv1a_64", "", names, uneven}, pool{"modula", "murmur", "", names, uneven}, pool{"ketama", "md5", "{}", names, uneven},
		pool{"modula", "crc32", "$$", names, even}, pool{"ketama", "jenkins", "", names[:1], even}, pool{"ketama", "hsieh", "{}", names[:2], []int{3, 4}}, pool{"ketama", "crc16", "", names[:3], uneven})
}

func (p *pool) ring(t testing.TB) (*hash.Ring, []string) {
	t.Helper()
	var servers []hash.Server
	for i, n := range p.Names {
		servers = append(servers, hash.Server{Name: n, Weight: p.Weights[i]})
	}
	slices.SortFunc(servers, func(a, b hash.Server) int { return hash.LessTwemproxy(a.Name, b.Name) })
	tw, err := hash.NewTwemproxy(p.Distribution, p.Hash, p.Tag, servers)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range servers {
		names = append(names, s.Name)
	}
	return tw.Ring(nil), names
}

// randomKeys returns keys of a pool: of all lengths, with bytes from 0x80 on and hash tags.
func randomKeys(number, n int) [][]byte {
	r := rand.New(rand.NewPCG(uint64(number), 11))
	list := make([][]byte, n)
	for i := range list {
		key := fmt.Appendf(nil, "%d.%x", number, i)
		for range r.IntN(40) {
			switch c := byte(r.IntN(256)); {
			case r.IntN(8) == 0:
				key = append(key, "{}$"[r.IntN(3)])
			case c > ' ' && c != 0x7f:
				key = append(key, c)
			}
		}
		list[i] = key
	}
	return list
}

// TestGolden compares placements with those that were recorded when the real twemproxy agreed with them.
func TestGolden(t *testing.T) {
	got := map[string]uint64{}
	for i, p := range pools() {
		ring, names := p.ring(t)
		sum := fnv.New64a()
		for _, key := range randomKeys(i, 2000) {
			fmt.Fprintln(sum, names[ring.Pick(key)])
		}
		got[fmt.Sprintf("%02d %s %s %q %v %v", i, p.Distribution, p.Hash, p.Tag, p.Names, p.Weights)] = sum.Sum64()
	}
	file := filepath.Join("testdata", "twemproxy.json")
	if *rewrite {
		text, err := json.MarshalIndent(got, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]uint64{}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if len(want) != len(got) {
		t.Errorf("%d pools, recorded are %d", len(got), len(want))
	}
	for name, sum := range got {
		if want[name] != sum {
			t.Errorf("%s: keys have moved", name)
		}
	}
}

// TestRealTwemproxy stores keys through the real twemproxy, and looks on which server each is.
func TestRealTwemproxy(t *testing.T) {
	if _, err := exec.LookPath("nutcracker"); err != nil {
		t.Skip("nutcracker is not installed: run .ci/tools")
	}
	all := pools()
	var servers []*memcachetest.Server
	for range 5 {
		servers = append(servers, memcachetest.Start(t, "-m", "1024"))
	}
	var config strings.Builder
	ports := make([]string, len(all))
	for i, p := range all {
		ports[i] = memcachetest.FreePort(t)
		fmt.Fprintf(&config, "p%d:\n  listen: 127.0.0.1:%s\n  hash: %s\n  distribution: %s\n", i, ports[i], p.Hash, p.Distribution)
		if p.Tag != "" {
			fmt.Fprintf(&config, "  hash_tag: \"%s\"\n", p.Tag)
		}
		config.WriteString("  servers:\n")
		for j, n := range p.Names {
			fmt.Fprintf(&config, "   - %s:%d %s\n", servers[j].Addr, p.Weights[j], n)
		}
	}
	memcachetest.StartNutcracker(t, config.String(), "127.0.0.1:"+ports[len(ports)-1])
	each := max(1, *keys/len(all))
	for i := range all {
		store(t, "127.0.0.1:"+ports[i], randomKeys(i, each))
	}
	at := map[string]int{} // of each key
	for j, s := range servers {
		c, err := stats.Dial(t.Context(), s.Addr, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Dump(func(it stats.Item) bool {
			key, err := url.PathUnescape(it.Key)
			if err != nil {
				t.Fatal(err)
			}
			at[key] = j
			return true
		}); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	elsewhere := 0
	for i, p := range all {
		ring, names := p.ring(t)
		for _, key := range randomKeys(i, each) {
			got, ok := at[string(key)]
			if want := names[ring.Pick(key)]; !ok || p.Names[got] != want {
				if elsewhere++; elsewhere < 10 {
					t.Errorf("pool %d, %s %s: %q is on %v (%v), expected %s", i, p.Distribution, p.Hash, key, p.Names[got], ok, want)
				}
			}
		}
	}
	t.Logf("%d keys of %d pools, %d elsewhere", len(at), len(all), elsewhere)
}

// store sends keys without values, and waits for the last one.
func store(t *testing.T, addr string, list [][]byte) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
	r := bufio.NewReader(conn)
	for len(list) > 0 {
		batch := list[:min(len(list), 500)]
		list = list[len(batch):]
		var b bytes.Buffer
		for _, key := range batch {
			fmt.Fprintf(&b, "set %s 0 0 0\r\n\r\n", key)
		}
		if _, err := conn.Write(b.Bytes()); err != nil {
			t.Fatal(err)
		}
		want := strings.Repeat("STORED\r\n", len(batch))
		got := make([]byte, len(want))
		if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
			t.Fatalf("got %.100q, %v", got, err)
		}
	}
}

// TestEjected: keys of a server that is not in use move, and for ketama no others.
func TestEjected(t *testing.T) {
	p := pools()[0]
	full, names := p.ring(t)
	var servers []hash.Server
	for _, n := range names {
		servers = append(servers, hash.Server{Name: n, Weight: 1})
	}
	tw, err := hash.NewTwemproxy("ketama", p.Hash, "", servers)
	if err != nil {
		t.Fatal(err)
	}
	left := tw.Ring(func(i int) bool { return i != 2 })
	for _, key := range randomKeys(0, 2000) {
		was, is := full.Pick(key), left.Pick(key)
		if is == 2 || was != 2 && was != is {
			t.Fatalf("%q moves from %d to %d", key, was, is)
		}
	}
	if tw.Ring(func(int) bool { return false }) != nil {
		t.Error("a ring without servers")
	}
	for _, bad := range [][3]string{{"x", "md5", ""}, {"ketama", "x", ""}, {"ketama", "md5", "{"}} {
		if _, err := hash.NewTwemproxy(bad[0], bad[1], bad[2], servers); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}
