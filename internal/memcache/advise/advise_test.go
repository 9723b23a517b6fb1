package advise

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shaledb/shale/internal/memcache/memcachetest"
	"github.com/shaledb/shale/internal/memcache/slab"
	"github.com/shaledb/shale/internal/memcache/stats"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files")

func readFile(t testing.TB, name string) *Server {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := Read(name, f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTables reads the two tables of a report of 2015, before and after 1.25 was replaced by 1.07.
func TestTables(t *testing.T) {
	before, after := readFile(t, "display-1.25.txt"), readFile(t, "display-1.07.txt")
	if before.Config.Factor != 1.25 || after.Config.Factor != 1.07 {
		t.Errorf("factors %g and %g", before.Config.Factor, after.Config.Factor)
	}
	if got := before.Classes[2].ChunkSize; got != 1856 {
		t.Errorf("class 14 has %d bytes", got)
	}
	for _, c := range []struct {
		golden  string
		servers []*Server
		ask     Ask
	}{
		{"before", []*Server{before}, Ask{Factors: []float64{1.07}, Memory: 4096 << 20, Price: 4.43}},
		{"after", []*Server{after}, Ask{Memory: 4096 << 20, Price: 4.43}},
		{"sizes", []*Server{readFile(t, "sizes.txt")}, Ask{}},
	} {
		r, err := Advise(c.servers, c.ask)
		if err != nil {
			t.Fatal(err)
		}
		if o := r.Options[r.Advised]; o.Refused != "" || slices.Contains(r.CommandLine, "1.07") {
			t.Errorf("%s: advises %+v", c.golden, o)
		}
		var text bytes.Buffer
		if err := r.Print(&text); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", c.golden+".golden")
		if *rewrite {
			if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), text.String()); d != "" {
			t.Errorf("%s: -want +got: %s", c.golden, d)
		}
	}
}

func TestBadFiles(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "expected the table",
		"hello\n":                          "expected the table",
		"1000 5\n 12 1.2K 11s 1 53 no 0\n": "both a table",
		" 12 1.2K 11s 1 53 no\n 12 1.2K 11s 1 53 no\n": "listed twice",
		" 12 97B 11s 1 53 no\n":                        "not those of a growth factor",
		"99999999999 5\n":                              "up to 1 GB",
		" 12 0.0K 11s 1 53 no\n":                       "expected the size",
	} {
		if _, err := Read("x", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// fill stores items of the sizes of the report until the server has evicted many, and returns how many it
// holds.
func fill(t *testing.T, addr string) int64 {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := rand.New(rand.NewPCG(7, 8))
	classes := []struct{ low, high, weight int }{{1265, 1352, 7}, {1353, 1448, 15}, {1449, 1552, 907}, {1553, 1664, 225}, {1665, 1784, 13}}
	var batch bytes.Buffer
	value := strings.Repeat("v", 2000)
	for i := range 45_000 {
		at := r.IntN(7 + 15 + 907 + 225 + 13)
		c := classes[0]
		for _, c = range classes {
			if at -= c.weight; at < 0 {
				break
			}
		}
		key := fmt.Sprintf("item%08d", i)
		n := c.low + r.IntN(c.high-c.low+1) - slab.ItemSize(len(key), 0, 0, true)
		fmt.Fprintf(&batch, "set %s 0 0 %d noreply\r\n%s\r\n", key, n, value[:n])
	}
	if _, err := conn.Write(batch.Bytes()); err != nil {
		t.Fatal(err)
	}
	c, err := stats.Dial(t.Context(), addr, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		s, err := c.Ask("")
		if err != nil {
			t.Fatal(err)
		}
		if m := s.Map(); number(m, "total_items") >= 45_000 {
			if number(m, "evictions") == 0 {
				t.Fatal("nothing was evicted: the load is too small")
			}
			return number(m, "curr_items")
		}
	}
	t.Fatal("the items were not stored within 60 s")
	return 0
}

// TestMemoryGained starts a real server as advised for the items of another, and stores the same again.
func TestMemoryGained(t *testing.T) {
	before := memcachetest.Start(t, "-m", "48")
	was := fill(t, before.Addr)
	s, err := Observe(t.Context(), before.Addr, 10*time.Second, 1e6)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Advise([]*Server{s}, Ask{Factors: []float64{1.07}, Price: 4.43})
	if err != nil {
		t.Fatal(err)
	}
	w := r.Wastes[0]
	if sum := w.Items + w.InChunks + w.PageEnds + w.LastPages + w.Held + w.Unassigned; sum < s.Memory*98/100 || sum > s.Memory*102/100 || !s.Exact {
		t.Errorf("the parts add up to %d of %d bytes: %+v", sum, s.Memory, w)
	}
	if refused := r.Options[3]; refused.Config.Factor != 1.07 || refused.Refused == "" {
		t.Errorf("1.07 is not refused: %+v", refused)
	}
	option := r.Options[r.Advised]
	after := memcachetest.Start(t, append([]string{"-m", "48"}, option.Args...)...)
	is := fill(t, after.Addr)
	gained := float64(is)/float64(was) - 1
	t.Logf("%d items before, %d with %v: %+.1f %%, predicted %+.1f %%", was, is, option.Args, 100*gained, 100*option.More)
	if gained < 0.08 || gained < option.More-0.03 {
		t.Errorf("%+.1f %% more items, predicted %+.1f %%", 100*gained, 100*option.More)
	}
	again, err := Observe(t.Context(), after.Addr, 10*time.Second, 1e6)
	if err != nil || again.Config.Sizes == nil {
		t.Errorf("a server with slab_sizes: %+v, %v", again, err)
	}
}

// TestLargeItems compares the demand for chunks with those that a real server uses, for items in several.
func TestLargeItems(t *testing.T) {
	s := memcachetest.Start(t, "-m", "100", "-o", "slab_chunk_max=65536", "-f", "1.2")
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := rand.New(rand.NewPCG(9, 10))
	for i := range 60 {
		n := 1 + r.IntN(600_000)
		if _, err := fmt.Fprintf(conn, "set large%d 0 0 %d\r\n%s\r\n", i, n, strings.Repeat("v", n)); err != nil {
			t.Fatal(err)
		}
		reply := make([]byte, len("STORED\r\n"))
		if _, err := conn.Read(reply); err != nil || string(reply) != "STORED\r\n" {
			t.Fatalf("%q, %v", reply, err)
		}
	}
	seen, err := Observe(t.Context(), s.Addr, 10*time.Second, 1e6)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]int64{}
	for _, d := range seen.Config.Demand(seen.Items) {
		want[seen.Config.Table().Of(d.Size).ID] += int64(d.Count)
	}
	got := map[int]int64{}
	for _, c := range seen.Classes {
		if c.Used > 0 {
			got[c.ID] = c.Used
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("chunks by class: -computed +used: %s", d)
	}
}

// TestFindings has counters that call for something.
func TestFindings(t *testing.T) {
	s := &Server{Addr: "a:1", Config: slab.Default(), Memory: 64 << 20, Items: []slab.Items{{Size: 900, Head: 100, Count: 70_000}},
		Stats: map[string]string{"curr_connections": "10", "rejected_connections": "7", "store_too_large": "3", "store_no_memory": "2", "evictions": "10", "evicted_unfetched": "4",
			"badcrc_from_extstore": "1", "extstore_io_queue": "500", "extstore_limit_maxbytes": "1000"},
		Settings: map[string]string{"maxconns": "1024", "tcpport": "11300", "inter": "10.0.0.1", "num_threads": "8", "cas_enabled": "no", "evictions": "on", "ext_io_threadcount": "2"}}
	r, err := Advise([]*Server{s}, Ask{})
	if err != nil {
		t.Fatal(err)
	}
	var topics []string
	for _, f := range r.Findings {
		topics = append(topics, f.Topic)
	}
	if want := []string{"connections", "item limit", "out of memory", "churn", "extstore", "extstore threads"}; !slices.Equal(topics, want) {
		t.Errorf("findings %v, want %v", topics, want)
	}
	if got := strings.Join(r.CommandLine, " "); !strings.HasPrefix(got, "memcached -p 11300 -l 10.0.0.1 -m 64 -t 8 -C -c 2048 ") || !strings.Contains(got, "ext_threads=8") {
		t.Error(got)
	}
	if text, err := json.Marshal(r); err != nil || !bytes.Contains(text, []byte(`"advised":`)) {
		t.Errorf("%s, %v", text, err)
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"display-1.25.txt", "display-1.07.txt", "sizes.txt"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("key=k0 exp=-1 la=1795707912 cas=2 fetch=no cls=15 size=1861\nSTAT 96 3\n")
	f.Add(" 1 96B 0s 1 5 yes 0 0 0\n 63 512.0K 1s 1 1 yes\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Read("fuzz", strings.NewReader(text))
		if err != nil {
			return
		}
		if err := s.Config.Check(); err != nil {
			t.Error(err)
		}
		for _, it := range s.Items {
			if it.Head > it.Size || it.Size > 1<<30 || !(it.Count > 0) {
				t.Errorf("%+v", it)
			}
		}
		s.fill(64 << 20)
		if w := s.Waste(); w.InChunks < 0 || w.PageEnds < 0 || w.LastPages < 0 || w.Held < 0 || w.Unassigned < 0 {
			t.Errorf("%+v", w)
		}
	})
}
