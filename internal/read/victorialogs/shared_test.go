package victorialogs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/rfc3339"
	"github.com/shaledb/shale/internal/read/victorialogs/watch"
)

// storedLine is a line of an account, which a filter of its team may select.
type storedLine struct {
	account, team, app, pod string
	time                    int64
	text                    int
}

// countingServer counts lines as VictoriaLogs does.
type countingServer struct {
	mu     sync.Mutex
	lines  []storedLine
	counts atomic.Int32 // requests of the directory
}

var (
	askedRange  = regexp.MustCompile(`_time:\[([^,]+),([^\]]+)\]`)
	askedBucket = regexp.MustCompile(`_time:(\d+)ns(?: offset (-?\d+)ns)?`)
)

func (s *countingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.FormValue("query")
	in := askedRange.FindStringSubmatch(q)
	from, _ := rfc3339.Parse([]byte(in[1]))
	to, _ := rfc3339.Parse([]byte(in[2]))
	type row struct {
		n, bytes int
		sum      float64
		times    map[string]bool
	}
	rows := map[string]*row{}
	step, offset := int64(5*time.Minute), int64(0)
	if m := askedBucket.FindStringSubmatch(q); m != nil {
		s.counts.Add(1)
		step, _ = strconv.ParseInt(m[1], 10, 64)
		offset, _ = strconv.ParseInt(m[2], 10, 64)
	}
	for _, l := range s.lines {
		if l.account != r.Header.Get("AccountID") || l.time < from || l.time > to || !strings.HasPrefix(l.team, r.FormValue("extra_filters")) {
			continue
		}
		stream := fmt.Sprintf(`{app=%q,pod=%q}`, l.app, l.pod)
		at := time.Unix(0, l.time-floorMod(l.time+offset, step)).UTC().Format(time.RFC3339Nano)
		key := fmt.Sprintf(`"_stream":%q,"_time":%q`, stream, at)
		switch {
		case strings.Contains(q, "uniq by (_stream)"):
			key = fmt.Sprintf(`"_stream":%q`, stream)
		case strings.Contains(q, "stats by (_time:5m)"), strings.Contains(q, "stats by (_time) sum(n)"):
			key = fmt.Sprintf(`"_time":%q`, at)
		case strings.Contains(q, " extract "):
			key = fmt.Sprintf(`"g0":%q,"_time":%q`, l.app, at)
		}
		x := rows[key]
		if x == nil {
			x = &row{times: map[string]bool{}}
			rows[key] = x
		}
		x.n, x.bytes = x.n+1, x.bytes+l.text
		x.times[fmt.Sprint(stream, l.time)] = true
		h := float64(0)
		for _, c := range []byte(fmt.Sprint(stream, l.time, l.text)) {
			h = float64(int(h*31+float64(c)) % 4194301)
		}
		x.sum += h
	}
	if _, fields, ok := strings.Cut(q, "| format \"<"); ok {
		fields, _, _ = strings.Cut(fields, ">\"")
		packed := map[string][]string{}
		for key, x := range rows {
			stream, at, _ := strings.Cut(key, `,"_time":`)
			values := strings.NewReplacer("_time", strings.Trim(at, `"`), "times", fmt.Sprint(len(x.times)), "recent", fmt.Sprint(x.n), "bytes", fmt.Sprint(x.bytes), "n", fmt.Sprint(x.n))
			packed[stream] = append(packed[stream], values.Replace(strings.ReplaceAll(fields, "> <", " ")))
		}
		for stream, cells := range packed {
			text, _ := json.Marshal(cells)
			fmt.Fprintf(w, `{%s,"cells":%q}`+"\n", stream, text)
		}
		return
	}
	for key, x := range rows {
		fmt.Fprintf(w, `{%s,"n":"%d","times":"%d","recent":"%d","bytes":"%d","x":"%.0f"}`+"\n", key, x.n, len(x.times), x.n, x.bytes, x.sum)
	}
}

// looseTier keeps all values, and loses, mixes up or damages some.
type looseTier struct {
	cache.Secondary
	mu     sync.Mutex
	rng    *rand.Rand
	values map[cache.Key][]byte
	lies   bool
}

func (c *looseTier) GetMany(_ context.Context, keys []cache.Key, _ cache.Asker, found []cache.Found) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, k := range keys {
		v, ok := c.values[k]
		switch n := c.rng.IntN(12); {
		case !c.lies:
		case n == 0:
			ok = false
		case n == 1 && ok:
			v = bytes.Clone(v)
			v[c.rng.IntN(len(v))] ^= 1 << c.rng.IntN(8)
		case n == 2 && ok:
			v = v[:c.rng.IntN(len(v))]
		case n == 3 && ok: // that of another name
			for _, v = range c.values {
				break
			}
		}
		if ok {
			found[i] = cache.Found{Value: v, From: cache.Shared}
		}
	}
}

func (c *looseTier) Offer(k cache.Key, _ cache.Asker, v []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values[k] = v
}

// TestShared: whatever becomes of lines, and whatever a shared tier does to values, each process of a fleet
// counts for each tenant what the server has, as one without a tier does.
func TestShared(t *testing.T) {
	for seed := range uint64(2) {
		testShared(t, rand.New(rand.NewPCG(seed, 22)))
	}
}

func testShared(t *testing.T, rng *rand.Rand) {
	store := &countingServer{}
	server := httptest.NewServer(store)
	defer server.Close()
	tier := &looseTier{rng: rand.New(rand.NewPCG(1, 1)), values: map[cache.Key][]byte{}, lies: true}
	var now atomic.Int64
	now.Store(1_800_000_000e9)
	start := func() *Source {
		o := Options{
			Settings: Settings{Source: At(server.URL), Requests: 4, CheckEvery: 10 * time.Second}, ClosedAfter: 2 * time.Minute, countLimit: time.Minute,
			Now: now.Load, Shared: tier, Registerer: prometheus.NewRegistry(),
		}
		if err := o.Settings.Accounts.UnmarshalText([]byte("all=1,some=1,other=2")); err != nil {
			t.Fatal(err)
		}
		if err := o.Settings.Filters.UnmarshalText([]byte("some=x")); err != nil {
			t.Fatal(err)
		}
		s := GroupAlways(New(o))
		return s
	}
	fleet := []*Source{start(), start(), start()}
	defer func() {
		for _, s := range fleet {
			s.Close()
		}
	}()
	line := func() storedLine {
		return storedLine{
			account: []string{"1", "2"}[rng.IntN(2)], team: []string{"x", "y"}[rng.IntN(2)], app: []string{"a", "b"}[rng.IntN(2)],
			pod: []string{"1", "2"}[rng.IntN(2)], time: now.Load() - rng.Int64N(int64(8*time.Hour)), text: rng.IntN(100),
		}
	}
	for range 1000 {
		store.lines = append(store.lines, line())
	}
	hits, kept := 0.0, 0.0
	for step := range 200 {
		store.mu.Lock()
		switch rng.IntN(30) {
		case 0:
			store.lines = append(store.lines, line())
		case 1:
			store.lines = slices.Delete(store.lines, 0, 1)
		case 2: // as many others
			store.lines[rng.IntN(len(store.lines))].text++
		case 3:
			l := &store.lines[rng.IntN(len(store.lines))]
			l.app, l.time = "b", l.time+1
		}
		store.mu.Unlock()
		if rng.IntN(20) == 0 {
			i := rng.IntN(len(fleet))
			fleet[i].Close()
			fleet[i] = start()
		}
		now.Add(int64(watch.SumEvery + 2*watch.Settling)) // changes are seen by then
		s, tenant := fleet[rng.IntN(len(fleet))], []string{"all", "some", "other"}[rng.IntN(3)]
		if rng.IntN(3) == 0 { // a count that begins after a query
			s.watch.Check(context.Background(), []Account{{ID: 1}, {ID: 2}}, model.TimeRange{Min: now.Load() - int64(time.Hour), Max: now.Load()})
			s.watch.Wait()
		}
		req := request()
		req.Tenant = tenant
		unit := []int64{int64(5 * time.Minute), int64(15 * time.Minute), int64(20 * time.Second)}[rng.IntN(3)]
		end := now.Load() / unit * unit
		req.Range = model.TimeRange{Min: end - int64(1+rng.IntN(8))*int64(time.Hour) + rng.Int64N(2)*rng.Int64N(unit) + 1, Max: end}
		req.Cells = &model.TextCells{Step: unit, Bytes: rng.IntN(2) == 0, Grouped: rng.IntN(2) == 0, Labels: []string{"app"}}
		got, want := countedBy(t, s, req), store.counted(req, tenant)
		if got != want {
			t.Fatalf("step %d, tenant %s, range %v, step %d: got\n%s\nwant\n%s", step, tenant, req.Range, unit, got, want)
		}
		s.watch.Wait()
		hits, kept = 0, 0
		for _, s := range fleet {
			hits += testutil.ToFloat64(s.metrics.shared.WithLabelValues("hit"))
			kept += testutil.ToFloat64(s.metrics.shared.WithLabelValues("kept"))
		}
	}
	if hits < 20 || kept < 20 {
		t.Errorf("%.0f values were found and %.0f kept: too few for a test", hits, kept)
	}
}

// countedBy returns the lines and bytes by application and cell.
func countedBy(t *testing.T, s *Source, req *model.Request) string {
	cursors, err := s.SelectText(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][2]int64{}
	for _, c := range cursors {
		for c.Next(context.Background()) {
			chunks, err := c.Chunks(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range chunks {
				key := fmt.Sprint(string(c.Labels().Get("app")), (x.Min+req.Cells.Step-1)/req.Cells.Step)
				sum := all[key]
				sum[0] += int64(x.Rows)
				if req.Cells.Bytes {
					sum[1] += x.Bytes
				}
				all[key] = sum
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if used := req.Quota.Charged(); used != (model.Charge{}) {
		t.Errorf("%v is still taken", used)
	}
	return fmt.Sprint(all)
}

// counted is what countedBy should return.
func (s *countingServer) counted(req *model.Request, tenant string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string][2]int64{}
	for _, l := range s.lines {
		if l.account == map[string]string{"other": "2"}[tenant] || l.account == "1" && (tenant == "all" || tenant == "some" && l.team == "x") {
			if req.Range.Contains(l.time) {
				key := fmt.Sprint(l.app, (l.time+req.Cells.Step-1)/req.Cells.Step)
				sum := all[key]
				sum[0]++
				if req.Cells.Bytes {
					sum[1] += int64(l.text)
				}
				all[key] = sum
			}
		}
	}
	return fmt.Sprint(all)
}

// TestSharedHolds: a restarted process takes what an earlier one has counted, and asks for the newest cells
// only. Rows that were counted while their lines changed are not shared, even if the lines are the same
// again.
func TestSharedHolds(t *testing.T) {
	store := &countingServer{}
	server := httptest.NewServer(store)
	defer server.Close()
	tier := &looseTier{rng: rand.New(rand.NewPCG(1, 1)), values: map[cache.Key][]byte{}}
	var now atomic.Int64
	now.Store(1_800_000_000e9)
	o := Options{
		Settings: Settings{Source: At(server.URL), Requests: 4, CheckEvery: 10 * time.Second}, ClosedAfter: 2 * time.Minute, Now: now.Load, Shared: tier, countLimit: time.Minute,
	}
	start := func() *Source {
		o.Registerer = prometheus.NewRegistry()
		s := New(o)
		return s
	}
	for i := range int64(500) {
		store.lines = append(store.lines, storedLine{account: "0", app: "a", pod: "1", time: now.Load() - i*int64(time.Minute), text: 7})
	}
	query := func(s *Source, unit, pause time.Duration) {
		req := request()
		end := now.Load() / int64(unit) * int64(unit)
		req.Range = model.TimeRange{Min: end - 6*int64(time.Hour) + 1, Max: end}
		req.Cells = &model.TextCells{Step: int64(unit)}
		countedBy(t, s, req)
		s.watch.Wait()
		now.Add(int64(pause) + 1)
	}
	shared := func(want int) {
		t.Helper()
		if n := len(tier.values); n != want {
			t.Errorf("%d values are shared, want %d", n, want)
		}
	}
	const unit, other = 5 * time.Minute, 10 * time.Minute
	s := start()
	query(s, unit, watch.SumEvery) // begins the first count
	query(s, unit, watch.SumEvery) // the lines have settled
	shared(0)                      // no sum has confirmed them
	query(s, unit, time.Second)
	shared(5)
	removed := store.lines[200]
	store.lines = slices.Delete(store.lines, 200, 201)
	query(s, other, 11*time.Second) // before that is seen
	query(s, unit, 0)
	store.lines = append(store.lines, removed)
	now.Add(int64(11 * time.Second))
	query(s, unit, watch.SumEvery)
	query(s, unit, watch.SumEvery)
	// One of the five was counted without the line.
	shared(9)
	s.Close()
	before := store.counts.Load()
	s = start()
	query(s, unit, 0)
	defer s.Close()
	if n := testutil.ToFloat64(s.metrics.shared.WithLabelValues("hit")); n < 3 || store.counts.Load()-before > 2 {
		t.Errorf("%.0f values were found, %d requests", n, store.counts.Load()-before)
	}
}

// TestSharedNextToCopies: rows of an extent are not shared where its beginning, in which lines are there
// twice, lies before the range: copies are looked for in the range only.
func TestSharedNextToCopies(t *testing.T) {
	store := &countingServer{}
	server := httptest.NewServer(store)
	defer server.Close()
	tier := &looseTier{rng: rand.New(rand.NewPCG(1, 1)), values: map[cache.Key][]byte{}}
	var now atomic.Int64
	now.Store(1_800_000_000e9)
	begin := now.Load() - int64(5*time.Hour)
	for i := range int64(500) {
		store.lines = append(store.lines, storedLine{account: "0", app: "a", pod: "1", time: now.Load() - i*int64(time.Minute), text: 7})
	}
	store.lines = append(store.lines, storedLine{account: "0", app: "a", pod: "1", time: begin + int64(2*time.Minute), text: 7})
	s := New(Options{
		Settings: Settings{Source: At(server.URL), Requests: 4, CheckEvery: 10 * time.Second}, ClosedAfter: 2 * time.Minute, Now: now.Load, Shared: tier, countLimit: time.Minute,
		Registerer: prometheus.NewRegistry(),
	})
	defer s.Close()
	for range 6 {
		req := request()
		req.Range = model.TimeRange{Min: begin + int64(10*time.Minute) + 1, Max: begin + int64(5*time.Hour)}
		req.Cells = &model.TextCells{Step: int64(5 * time.Minute)}
		countedBy(t, s, req)
		s.watch.Wait()
		now.Add(int64(watch.SumEvery) + 1)
	}
	if n := len(tier.values); n != 3 { // the last hour has not ended
		t.Errorf("%d extents are shared, want those of 3 hours without copies", n)
	}
}
