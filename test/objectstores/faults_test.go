//go:build e2e

package objectstores

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/app"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/test/faultproxy"
)

// outage is how long a store refuses everything in these tests.
var outage = flag.Duration("outage", 4*time.Second, "how long a store refuses all requests in TestFaults")

// The stored lines: some in each stream, on each of several days.
const (
	faultDays, faultStreams, faultLines = 6, 40, 50
	faultWorkers                        = 4
)

// row is a line and its timestamp.
type row [2]string

// storedRows returns the rows of a stream of a tenant on the day that ends at end. Random bytes, so that they
// do not compress.
func storedRows(tenant string, stream int, end time.Time, lines, size int) []row {
	random := rand.New(rand.NewPCG(uint64(stream), uint64(end.Unix())+uint64(len(tenant))))
	rows := make([]row, lines)
	for i := range rows {
		text := fmt.Sprintf("%s %d %d ", tenant, stream, i)
		line := make([]byte, (size-len(text))/4*3)
		for k := range line {
			line[k] = byte(random.Uint32())
		}
		text += base64.StdEncoding.EncodeToString(line)
		rows[i] = row{fmt.Sprint(end.UnixNano() + int64(i)*int64(time.Millisecond)), text}
	}
	return rows
}

// request sends a request of a tenant and returns the status and the body.
func (s *shale) request(method, path, tenant string, body []byte) (int, []byte, http.Header) {
	req, err := http.NewRequest(method, "http://"+s.http+path, bytes.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return 0, nil, nil
	}
	req.Header.Set("X-Scope-OrgID", tenant)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, []byte(err.Error()), nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, []byte(err.Error()), nil
	}
	return resp.StatusCode, text, resp.Header
}

// push sends rows of streams of a tenant, and returns the status.
func (s *shale) push(tenant string, streams map[string][]row) (int, []byte) {
	var all []any
	for app, rows := range streams {
		all = append(all, map[string]any{"stream": map[string]string{"app": app}, "values": rows})
	}
	body, err := json.Marshal(map[string]any{"streams": all})
	if err != nil {
		s.t.Fatal(err)
	}
	status, text, _ := s.request(http.MethodPost, "/loki/api/v1/push", tenant, body)
	return status, text
}

// rows asks for all rows of a selector, oldest first.
func (s *shale) rows(tenant, query string, from, to time.Time) ([]row, error) {
	form := url.Values{"query": {query}, "start": {fmt.Sprint(from.UnixNano())}, "end": {fmt.Sprint(to.UnixNano())},
		"limit": {"5000"}, "direction": {"forward"}}
	status, text, _ := s.request(http.MethodGet, "/loki/api/v1/query_range?"+form.Encode(), tenant, nil)
	if status != http.StatusOK {
		return nil, fmt.Errorf("%d: %s", status, text)
	}
	var parsed struct {
		Data struct{ Result []struct{ Values []row } }
	}
	if err := json.Unmarshal(text, &parsed); err != nil {
		return nil, err
	}
	var all []row
	for _, r := range parsed.Data.Result {
		all = append(all, r.Values...)
	}
	slices.SortFunc(all, func(a, b row) int { return strings.Compare(a[0], b[0]) })
	return all, nil
}

// metric returns the sum of the values of a metric whose labels contain all of some texts.
func (s *shale) metric(name string, labels ...string) (sum float64) {
	for line := range strings.Lines(s.metrics()) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest[0] != '{' && rest[0] != ' ' || slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(rest, l) }) {
			continue
		}
		var v float64
		if _, err := fmt.Sscan(rest[strings.LastIndexByte(rest, ' ')+1:], &v); err == nil {
			sum += v
		}
	}
	return sum
}

// faultWorld is a server whose bucket is in a real S3 server, with a proxy in front of it and blocks of
// several days.
type faultWorld struct {
	*shale
	store *Store
	proxy *faultproxy.Proxy
	days  []time.Time // their rows begin at these times
	want  map[string][]row
}

func newFaultWorld(t *testing.T, flags ...string) *faultWorld {
	t.Helper()
	w := &faultWorld{store: Start(t, Versity), want: make(map[string][]row)}
	var err error
	if w.proxy, err = faultproxy.Start("http://" + w.store.Addr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.proxy.Close() })
	where := w.store.At("faults")
	where.Endpoint = w.proxy.URL
	w.shale = newShale(t, buildShale(t), where.String())
	w.args = append(w.args, flags...)
	return w
}

// source has the labels of a stream.
type source string

// BuildLabels adds the labels of the stream.
func (s source) BuildLabels(_ int, b *model.LabelsBuilder) { b.Add([]byte("app"), []byte(s)) }

// fill writes rows of past days, and ships a block for each day. The server does not run yet.
func (w *faultWorld) fill(tenants []string, days, streams, lines, size int) {
	w.t.Helper()
	e, err := app.OpenEngine(w.t.Context(), app.EngineOptions{
		FS: vfs.NewMem(), DataDir: "/data", Bucket: open(w.t, w.store.At("faults")), Node: "filler-" + tenants[0], MemoryBytes: 64 << 20, Idle: true,
		Now: func() int64 { return time.Now().UnixNano() },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	today := time.Now().UTC().Truncate(24 * time.Hour)
	for d := range days {
		end := today.Add(-time.Duration(days-d) * 24 * time.Hour)
		if d >= len(w.days) {
			w.days = append(w.days, end)
		}
		for _, tenant := range tenants {
			for i := range streams {
				app := fmt.Sprint("a", i)
				rows := storedRows(tenant, i, end, lines, size)
				w.want[tenant+"/"+app] = append(w.want[tenant+"/"+app], rows...)
				b := e.Path().Batch(tenant, model.Logs)
				b.Source = source(app)
				for k, r := range rows {
					b.Text.AppendBlob(end.UnixNano()+int64(k)*int64(time.Millisecond), model.KindText, model.AppendLine(nil, &model.Line{Text: []byte(r[1])}), 0)
				}
				b.EndSeries(model.LabelsOf("app", app).Key(e.Path().Seed(), model.Logs))
				if _, err := e.Path().Push(w.t.Context(), b); err != nil {
					w.t.Fatal(err)
				}
				e.Path().Recycle(b)
			}
		}
		if err := e.Ship(); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// restart empties the caches of the server.
func (w *faultWorld) restart() {
	w.stop()
	w.start()
}

// pass is what a pass over all streams of a tenant has shown.
type pass struct {
	right, failed int
	wrong         []string
	errors        []string // different ones
	slowest, took time.Duration
}

// ask asks for every stream of a tenant, several at a time.
func (w *faultWorld) ask(tenant string, streams int) *pass {
	p := &pass{}
	var mu sync.Mutex
	var next atomic.Int64
	began := time.Now()
	var all sync.WaitGroup
	for range faultWorkers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(streams); i = next.Add(1) - 1 {
				app := fmt.Sprint("a", i)
				asked := time.Now()
				got, err := w.rows(tenant, fmt.Sprintf("{app=%q}", app), w.days[0], w.days[len(w.days)-1].Add(time.Hour))
				mu.Lock()
				p.slowest = max(p.slowest, time.Since(asked))
				switch {
				case err != nil:
					p.failed++
					p.errors = append(p.errors, err.Error())
				case !slices.Equal(got, w.want[tenant+"/"+app]):
					p.wrong = append(p.wrong, fmt.Sprintf("%s: %d of %d rows", app, len(got), len(w.want[tenant+"/"+app])))
				default:
					p.right++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	p.took = time.Since(began)
	return p
}

// writer pushes a line every 20 ms, and knows which ones were acknowledged.
type writer struct {
	w       *faultWorld
	began   time.Time
	acked   []row
	refused int
	stop    chan struct{}
	done    sync.WaitGroup
}

func (w *faultWorld) write() *writer {
	x := &writer{w: w, began: time.Now(), stop: make(chan struct{})}
	x.done.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-x.stop:
				return
			case <-tick.C:
			}
			r := row{fmt.Sprint(time.Now().UnixNano()), fmt.Sprint("line ", i)}
			if status, _ := w.push("live", map[string][]row{"live": {r}}); status == http.StatusNoContent {
				x.acked = append(x.acked, r)
			} else {
				x.refused++
			}
		}
	})
	return x
}

// end stops the writer and compares its rows with those that queries return.
func (x *writer) end() {
	x.w.t.Helper()
	close(x.stop)
	x.done.Wait()
	x.check("at the end")
}

func (x *writer) check(when string) {
	x.w.t.Helper()
	var got []row
	for from := x.began; from.Before(time.Now()); from = from.Add(time.Minute) {
		rows, err := x.w.rows("live", `{app="live"}`, from, from.Add(time.Minute))
		if err != nil {
			x.w.t.Errorf("%s: %v", when, err)
			return
		}
		got = append(got, rows...)
	}
	found := make(map[row]int, len(got))
	for _, r := range got {
		found[r]++
	}
	lost := slices.DeleteFunc(slices.Clone(x.acked), func(r row) bool { return found[r] == 1 })
	// A push without a response may have been stored.
	if len(lost) > 0 || len(got) != len(found) || len(found) > len(x.acked)+x.refused {
		x.w.t.Errorf("%s: %d rows are found, %d of them different; %d were acknowledged, of which %d are not found once",
			when, len(got), len(found), len(x.acked), len(lost))
	}
}

// peak returns the most memory that the server has taken.
func (s *shale) peak() int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	var kib int
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	if _, err := fmt.Sscan(after, &kib); err != nil {
		s.t.Fatal(err)
	}
	return kib >> 10
}

// faultCase is a fault and what it may do to queries.
type faultCase struct {
	name   string
	faults faultproxy.Faults
	// outage says that the faults end while queries run. error is what failed queries say; "": none fails.
	outage bool
	error  string
	// begin and end do more than the proxy does; nil: nothing.
	begin, end func() error
}

// TestFaults reads all rows through a proxy with faults in front of a real S3 server, while others are
// written. Results are complete, or errors that name the object and the cause. Requests stay within the
// budgets, and the server recovers by itself.
func TestFaults(t *testing.T) {
	t.Parallel()
	w := newFaultWorld(t)
	w.fill([]string{"a"}, faultDays, faultStreams, faultLines, 2000)
	bucket, gone := filepath.Join(w.store.dir, "objects", bucketName), filepath.Join(w.store.dir, "gone")
	w.start()
	w.coalesces()
	throttled := ""
	if *outage > 10*time.Second {
		throttled = "503" // the tries are used up
	}
	t.Log("| fault | right | failed | slowest s | all s | requests | with faults | repeated | hedged | MiB | recovered after s | pushes taken |")
	var usual int64 // requests of a pass without faults
	for _, c := range []faultCase{
		{name: "none"},
		{name: "1 % of requests get 500", faults: faultproxy.Faults{Errors: 0.01}},
		{name: "5 % of bodies are truncated", faults: faultproxy.Faults{Truncated: 0.05}},
		{name: "2 % stall for 2 s", faults: faultproxy.Faults{Stalls: 0.02, Stall: 2 * time.Second}},
		{name: "20 % get 503", faults: faultproxy.Faults{Errors: 0.2, Status: 503, Code: "SlowDown"}, outage: true},
		{name: "all get 503", faults: faultproxy.Faults{Errors: 1, Status: 503, Code: "SlowDown"}, outage: true, error: throttled},
		{name: "all get 403", faults: faultproxy.Faults{Errors: 1, Status: 403, Code: "AccessDenied"}, outage: true, error: "the store refuses access"},
		{name: "the bucket is deleted", outage: true, error: "the bucket does not exist",
			begin: func() error { return os.Rename(bucket, gone) }, end: func() error { return os.Rename(gone, bucket) }},
	} {
		requests := w.suffer(&c, usual)
		if usual == 0 {
			usual = requests
		}
	}
}

// coalesces counts the requests of a cold query of all lines, and those of twenty such queries at one time.
func (w *faultWorld) coalesces() {
	w.t.Helper()
	form := url.Values{"query": {`sum(count_over_time({app=~"a.+"} |~ "[0-9a-f]" [1h]))`}, "step": {"1h"},
		"start": {fmt.Sprint(w.days[0].UnixNano())}, "end": {fmt.Sprint(time.Now().UnixNano())}}
	requests := func(queries int) (requests, bytes int64, pages int) {
		w.restart()
		w.proxy.Reset()
		w.proxy.Inject(faultproxy.Faults{Delay: 20 * time.Millisecond})
		defer w.proxy.Inject(faultproxy.Faults{})
		var all sync.WaitGroup
		for i := range queries {
			all.Go(func() {
				status, text, h := w.request(http.MethodGet, "/loki/api/v1/query_range?"+form.Encode(), "a", nil)
				if status != http.StatusOK {
					w.t.Errorf("%d: %s", status, text)
				}
				if _, after, ok := strings.Cut(h.Get("Shale-Cost"), "pages-bucket="); ok && i == 0 {
					if _, err := fmt.Sscan(strings.ReplaceAll(after, ",", " "), &pages); err != nil {
						w.t.Error(err)
					}
				}
			})
		}
		all.Wait()
		counts := w.proxy.Counts()
		return counts.Requests, counts.Bytes, pages
	}
	one, bytes, pages := requests(1)
	twenty, more, _ := requests(20)
	w.t.Logf("one query: %d requests for %d pages, %d bytes; twenty at once: %d requests, %d bytes", one, pages, bytes, twenty, more)
	if one*4 > int64(pages) {
		w.t.Errorf("%d requests for %d pages", one, pages)
	}
}

// suffer runs a pass with a fault and returns its requests. usual is that number without faults.
func (w *faultWorld) suffer(c *faultCase, usual int64) int64 {
	t := w.t
	t.Helper()
	w.restart()
	live := w.write()
	w.proxy.Reset()
	w.proxy.Inject(c.faults)
	if c.begin != nil {
		if err := c.begin(); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	heal := func() {
		w.proxy.Inject(faultproxy.Faults{})
		if c.end != nil {
			if err := c.end(); err != nil {
				t.Error(err)
			}
		}
	}
	var healing sync.WaitGroup
	if c.outage {
		healing.Go(func() {
			time.Sleep(*outage)
			heal()
		})
	}
	p := w.ask("a", faultStreams)
	healing.Wait()
	counts := w.proxy.Counts()
	w.proxy.Inject(faultproxy.Faults{})
	healed := time.Now()
	var recovered time.Duration
	if p.failed > 0 {
		next := w.ask("a", faultStreams)
		for next.failed > 0 && time.Since(healed) < time.Minute {
			next = w.ask("a", faultStreams)
		}
		if recovered = time.Since(healed); next.failed > 0 || len(next.wrong) > 0 {
			t.Errorf("%s: not recovered: %v %v", c.name, next.errors, next.wrong)
		}
	}
	live.end()
	w.checkFaults(c, p)
	repeated, hedged := w.metric("shale_bucket_retries_total", `"repeated"`), w.metric("shale_bucket_hedges_total")
	elapsed := time.Since(began).Seconds()
	if most := 0.1*float64(counts.Requests) + elapsed + 20; repeated > most {
		t.Errorf("%s: %v requests were repeated, at most %v may be", c.name, repeated, most)
	}
	if most := float64(usual)*1.13 + elapsed + 40; usual > 0 && float64(counts.Requests) > most {
		t.Errorf("%s: %d requests, at most %.0f may be", c.name, counts.Requests, most)
	}
	rss := w.peak()
	if rss > 358 {
		t.Errorf("%s: %d MiB of memory; with --memory 256MiB it is at most 358", c.name, rss)
	}
	t.Logf("| %s | %d | %d | %.1f | %.1f | %d | %d | %.0f | %.0f | %d | %.1f | %d of %d |", c.name, p.right, p.failed, p.slowest.Seconds(), p.took.Seconds(),
		counts.Requests, counts.Faulty, repeated, hedged, rss, recovered.Seconds(), len(live.acked), len(live.acked)+live.refused)
	return counts.Requests
}

// checkFaults compares the results of a pass with what its faults allow.
func (w *faultWorld) checkFaults(c *faultCase, p *pass) {
	w.t.Helper()
	name, text := c.name, c.error
	if len(p.wrong) > 0 {
		w.t.Errorf("%s: wrong results: %v", name, p.wrong)
	}
	if text == "" && p.failed > 0 || text != "" && p.failed == 0 {
		w.t.Errorf("%s: %d of %d queries failed: %v", name, p.failed, p.failed+p.right, p.errors)
	}
	for _, e := range p.errors {
		if !strings.Contains(e, text) || !strings.Contains(e, "blocks/") && !strings.Contains(e, "catalog/") {
			w.t.Errorf("%s: the error does not name object and cause: %s", name, e)
		}
	}
	if len(p.errors) > 0 {
		w.t.Logf("%s: %s", name, p.errors[0])
	}
}

// TestFullDisk writes while the store refuses access. The disk is the buffer until it is full; then pushes
// get 503. When the store is back, all is shipped, and pushes are taken.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	w := newFaultWorld(t, "--disk", "128MiB")
	w.start()
	w.proxy.Inject(faultproxy.Faults{Errors: 1, Status: 403, Code: "AccessDenied"})
	const size = 1 << 20
	begin := time.Now().Add(-20 * time.Hour).Truncate(time.Minute)
	want := make(map[time.Time][]row)
	push := func(i int) (int, []byte) {
		at := begin.Add(time.Duration(i) * time.Minute) // a window of its own
		rows := storedRows("full", i, at, 20, size/20)
		status, text := w.push("full", map[string][]row{"a": rows})
		if status == http.StatusNoContent {
			want[at] = rows
		}
		return status, text
	}
	refused, text := 0, []byte(nil)
	i := 0
	for ; refused == 0; i++ {
		if status, body := push(i); status == http.StatusServiceUnavailable {
			refused, text = status, body
		} else if status != http.StatusNoContent {
			t.Fatalf("push %d: %d %s", i, status, body)
		}
		if i > 1000 {
			t.Fatal("a full disk takes everything")
		}
	}
	t.Logf("%d MB were taken, then: %d %s", len(want), refused, text)
	check := func(when string) {
		t.Helper()
		for at, rows := range want {
			if got, err := w.rows("full", `{app="a"}`, at, at.Add(time.Minute)); err != nil || !slices.Equal(got, rows) {
				t.Errorf("%s: %d of %d rows at %s: %v", when, len(got), len(rows), at, err)
			}
		}
	}
	check("while the disk is full")
	w.proxy.Inject(faultproxy.Faults{})
	healed := time.Now()
	w.until("writable", func() bool {
		status, _ := push(i)
		i++
		return status == http.StatusNoContent
	})
	t.Logf("the next push was taken %.1f s after the store was back; %d MiB of memory", time.Since(healed).Seconds(), w.peak())
	check("after the recovery")
	w.kill()
	w.start()
	check("after kill -9")
}
