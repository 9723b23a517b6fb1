package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api/peer"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/remote"
	"github.com/shaledb/shale/internal/read/remote/wire"
)

// cutter is a connection to a holder through which only so many bytes of answers pass. Then it closes, or it
// goes silent.
type cutter struct {
	left   atomic.Int64
	silent atomic.Bool
}

func (c *cutter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	inner, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &cutConn{inner, c, make(chan struct{}), new(atomic.Bool)}, nil
}

type cutConn struct {
	net.Conn
	c      *cutter
	closed chan struct{}
	once   *atomic.Bool
}

func (c *cutConn) Close() error {
	if !c.once.Swap(true) {
		close(c.closed)
	}
	return c.Conn.Close()
}

func (c *cutConn) Read(b []byte) (int, error) {
	left := c.c.left.Load()
	if left <= 0 {
		if c.c.silent.Load() {
			<-c.closed
		}
		c.Close()
		return 0, io.EOF
	}
	n, err := c.Conn.Read(b[:min(int64(len(b)), left)])
	c.c.left.Add(-int64(n))
	return n, err
}

// manyRows returns a setup with rows of both signals that take several frames.
func manyRows(t *testing.T) *setup { return someRows(t, 400) }

// someRows returns a setup with so many series of each signal.
func someRows(t *testing.T, series int) *setup {
	s := newSetup(t)
	t.Cleanup(s.close)
	long := strings.Repeat("x", 300)
	for i := range series {
		l := model.LabelsOf("__name__", "m", "i", fmt.Sprint(i))
		m, x := worldtest.Series{Labels: l}, worldtest.Series{Labels: l}
		for k := range int64(40) {
			at := now - k*int64(time.Second)
			m.Rows = append(m.Rows, worldtest.Float(at, math.Float64bits(float64(k))))
			x.Rows = append(x.Rows, worldtest.LineRow(at, &model.Line{Text: []byte(fmt.Sprint(k, long))}))
		}
		s.push(&worldtest.Batch{Tenant: "a", Signal: model.Metrics, Series: []worldtest.Series{m}})
		s.push(&worldtest.Batch{Tenant: "a", Signal: model.Logs, Series: []worldtest.Series{x}})
	}
	return s
}

// TestTooManySeries: a holder refuses a request for more series than the query may select, before it sends
// any, unless the query counts fewer than those that the holder selects.
func TestTooManySeries(t *testing.T) {
	s := someRows(t, 100)
	for _, p := range s.parts {
		if err := p.head.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	own := model.Matcher{Name: "i", Op: model.MatchRegexp, Match: func(v string) bool { return v == "7" }}
	for _, c := range []struct {
		name    string
		most    int64
		refused bool
		change  func(*model.Request)
	}{
		{name: "more than allowed", most: 10, refused: true},
		{name: "as many as allowed", most: 100},
		{name: "no limit"},
		{name: "labels", most: 10, change: func(r *model.Request) { r.LabelsOnly = true }},
		{name: "a matcher of the query process", most: 10, change: func(r *model.Request) { r.Matchers = []model.Matcher{own} }},
		{name: "hidden rows", most: 10, change: func(r *model.Request) { r.Horizon = &model.Horizon{Latest: now} }},
		{name: "logs", most: 10, change: func(r *model.Request) { r.Signal = model.Logs }},
	} {
		req := &model.Request{Tenant: "a", Signal: model.Metrics, Range: model.Always(), Quota: &model.Quota{MaxSeries: c.most}, Cost: new(model.Cost)}
		if c.change != nil {
			c.change(req)
		}
		cursors, err := s.far.Select(t.Context(), req)
		for _, x := range cursors {
			for x.Next(t.Context()) {
			}
			err = errors.Join(err, x.Err(), x.Close())
		}
		if refused := errors.Is(err, model.ErrLimit) && strings.Contains(err.Error(), "query.max-series"); refused != c.refused || err != nil && !refused {
			t.Errorf("%s: %v", c.name, err)
		} else if refused && len(cursors) > 0 {
			t.Errorf("%s: refused in the middle of %d answers", c.name, len(cursors))
		}
	}
}

// TestCut cuts the connections after any number of bytes. A query then returns all rows, or an error of class
// transient that names the peer.
func TestCut(t *testing.T) {
	s := manyRows(t)
	for _, signal := range []model.Signal{model.Metrics, model.Logs} {
		req := &model.Request{Tenant: "a", Signal: signal, Range: model.Always()}
		want, err := dump(read.New(read.Options{Sources: s.near()}), req)
		if err != nil {
			t.Fatal(err)
		}
		whole, failed := 0, 0
		for n := int64(100); whole < 2; n = n*3/2 + 7 {
			cut := new(cutter)
			cut.left.Store(n)
			o := s.options
			o.Client = &http.Client{Transport: &http.Transport{DialContext: cut.dial}}
			far := remote.New(o)
			got, err := dump(read.New(read.Options{Sources: []read.Source{far}}), req)
			far.Close()
			switch {
			case err == nil && got == want:
				whole++
			case err == nil:
				t.Fatalf("%s cut after %d bytes: a part of the rows came as all: %s", signal, n, firstDifference(got, want))
			case !errors.Is(err, model.ErrTransient) || !strings.Contains(err.Error(), "peer 127.0.0.1:"):
				t.Fatalf("%s cut after %d bytes: %v", signal, n, err)
			default:
				failed++
			}
		}
		if failed < 10 {
			t.Errorf("%s: only %d queries were cut", signal, failed)
		}
	}
}

// TestStall lets connections go silent in the middle.
func TestStall(t *testing.T) {
	s := manyRows(t)
	for _, n := range []int64{3000, 50_000, 200_000} {
		cut := new(cutter)
		cut.left.Store(n)
		cut.silent.Store(true)
		o := s.options
		o.Client, o.Stall = &http.Client{Transport: &http.Transport{DialContext: cut.dial}}, 300*time.Millisecond
		far := remote.New(o)
		_, err := dump(read.New(read.Options{Sources: []read.Source{far}}), &model.Request{Tenant: "a", Signal: model.Metrics, Range: model.Always()})
		if !errors.Is(err, model.ErrTransient) || !strings.Contains(err.Error(), "peer 127.0.0.1:") {
			t.Errorf("silent after %d bytes: %v", n, err)
		}
		far.Close()
	}
}

// TestCancel ends queries in the middle. Holders must let go of what they pin.
func TestCancel(t *testing.T) {
	s := manyRows(t)
	q := read.New(read.Options{Sources: []read.Source{s.far}})
	for _, signal := range []model.Signal{model.Metrics, model.Logs} {
		ctx, cancel := context.WithCancel(context.Background())
		req := fresh(&model.Request{Tenant: "a", Signal: signal, Range: model.Always()})
		var err error
		if signal == model.Metrics {
			var set *read.SeriesSet
			if set, err = q.Select(ctx, req); err != nil {
				t.Fatal(err)
			}
			set.Next(ctx)
			cancel()
			for set.Next(ctx) {
			}
			err = set.Err()
			set.Close()
		} else {
			var set *read.TextSet
			if set, err = q.SelectText(ctx, req); err != nil {
				t.Fatal(err)
			}
			set.Next(ctx)
			cancel()
			for set.Next(ctx) {
			}
			err = set.Err()
			set.Close()
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", signal, err)
		}
		cancel()
	}
	// Closing a server waits for its requests.
	for _, x := range s.servers {
		x.CloseClientConnections()
	}
}

// TestMemory gives a query too little memory for what comes.
func TestMemory(t *testing.T) {
	s := manyRows(t)
	q := read.New(read.Options{Sources: []read.Source{s.far}})
	req := &model.Request{Tenant: "a", Signal: model.Metrics, Range: model.Always(), Quota: &model.Quota{MaxBytes: 100 << 10}, Cost: new(model.Cost)}
	set, err := q.Select(context.Background(), req)
	if err == nil {
		for set.Next(context.Background()) {
		}
		err = errors.Join(set.Err(), set.Close())
	}
	if !errors.Is(err, model.ErrLimit) {
		t.Errorf("%v", err)
	}
}

// log is what the test says that the bucket covers.
type log struct {
	of    []remote.Progress
	fresh func() []remote.Progress // nil: of
}

func (l *log) Journals(_ context.Context, fresh bool) ([]remote.Progress, error) {
	if fresh && l.fresh != nil {
		return l.fresh(), nil
	}
	return l.of, nil
}

// over returns what a query over the setup with a log selects.
func (s *setup) over(ctx context.Context, l *log, change func(*remote.Options)) error {
	o := s.options
	o.Log = l
	if change != nil {
		change(&o)
	}
	far := remote.New(o)
	defer far.Close()
	set, err := read.New(read.Options{Sources: []read.Source{far}}).Select(ctx, fresh(&model.Request{Tenant: "a", Signal: model.Metrics, Range: model.Always()}))
	if err != nil {
		return err
	}
	for set.Next(ctx) {
	}
	return errors.Join(set.Err(), set.Close())
}

// progress says that the bucket covers each journal up to a number.
func (s *setup) progress(covered uint64) (all []remote.Progress) {
	for _, p := range s.parts {
		all = append(all, remote.Progress{Node: p.node, Epoch: 3, Covered: covered, End: p.head.Applied()})
	}
	return all
}

// TestGap checks that nothing may lie between the bucket and the holders.
func TestGap(t *testing.T) {
	s := manyRows(t)
	ctx := context.Background()
	if err := s.over(ctx, &log{of: s.progress(0)}, nil); err != nil {
		t.Fatal(err)
	}
	gap := func(name string, err error, want remote.Gap) {
		t.Helper()
		var g *remote.Gap
		if !errors.As(err, &g) || !errors.Is(err, model.ErrTransient) {
			t.Fatalf("%s: %v", name, err)
		}
		if g.Node != want.Node || g.Epoch != 3 || g.From != want.From || g.To != want.To {
			t.Errorf("%s: %+v, want %+v", name, *g, want)
		}
	}
	s.parts[1].from = 8
	gap("not covered", s.over(ctx, &log{of: s.progress(5)}, nil), remote.Gap{Node: "p1", From: 6, To: 7})
	// The bucket is ahead of the view that the query began with.
	if err := s.over(ctx, &log{of: s.progress(5), fresh: func() []remote.Progress { return s.progress(7) }}, nil); err != nil {
		t.Error(err)
	}
	s.parts[1].from = 0
	more := append(s.progress(0), remote.Progress{Node: "p9", Epoch: 3, Covered: 10, End: 12})
	gap("no holder", s.over(ctx, &log{of: more}, nil), remote.Gap{Node: "p9", From: 11, To: 12})
	more[len(more)-1].Covered = 12
	if err := s.over(ctx, &log{of: more}, nil); err != nil {
		t.Error("an idle journal needs no holder: ", err)
	}
	more[len(more)-1].Unknown = errors.New("brokers are away")
	err := s.over(ctx, &log{of: more}, nil)
	gap("an unknown end without a holder", err, remote.Gap{Node: "p9", From: 13})
	if !strings.Contains(err.Error(), "brokers are away") {
		t.Errorf("%v does not say why", err)
	}
	held := s.progress(0)
	held[0].Unknown = errors.New("brokers are away")
	if err := s.over(ctx, &log{of: held}, nil); err != nil {
		t.Error("an unknown end with a holder: ", err)
	}
	if err := s.over(remote.Strong(ctx), &log{of: held}, nil); err == nil || !strings.Contains(err.Error(), "brokers are away") {
		t.Errorf("an unknown end, and a query that must see it: %v", err)
	}
	// A peer that is gone is named.
	s.servers[1].Close()
	err = s.over(ctx, &log{of: s.progress(0)}, nil)
	gap("gone", err, remote.Gap{Node: "p2", From: 1, To: s.parts[2].head.Applied()})
	if !strings.Contains(err.Error(), s.options.Peers[1]) {
		t.Errorf("%v does not name %s", err, s.options.Peers[1])
	}
	if err := s.over(ctx, nil, func(o *remote.Options) { o.Log = nil }); !errors.Is(err, model.ErrTransient) {
		t.Errorf("without a log, a peer that is gone: %v", err)
	}
}

// TestLag: a query waits until a holder has applied what the log had. One that must see everything asks the
// log again.
func TestLag(t *testing.T) {
	s := manyRows(t)
	p := s.parts[0]
	at := p.head.Applied()
	l := &log{of: s.progress(0)}
	l.of[0].End = at + 1
	ctx := remote.Strong(context.Background())
	for _, kind := range []context.Context{ctx, context.Background()} {
		short, cancel := context.WithTimeout(kind, 200*time.Millisecond)
		if err := s.over(short, l, nil); err == nil {
			t.Errorf("strong: %t: a query did not wait for what was acknowledged", kind == ctx)
		}
		cancel()
	}
	asked := 0
	fresh := &log{of: s.progress(0), fresh: func() []remote.Progress { asked++; return s.progress(0) }}
	if err := s.over(context.Background(), fresh, nil); err != nil || asked > 0 {
		t.Errorf("a query asked the log %d times, and got %v", asked, err)
	}
	if err := s.over(ctx, fresh, nil); err != nil || asked == 0 {
		t.Errorf("a query that must see everything asked the log %d times, and got %v", asked, err)
	}
	done := make(chan error, 1)
	go func() { done <- s.over(ctx, l, nil) }()
	b := &model.Batch{Tenant: "a", Signal: model.Metrics}
	x := model.LabelsOf("__name__", "strong")
	b.AddSample(x.Key(seed, model.Metrics), now, 1)
	b.Labels.Append(0, x)
	p.apply(b)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestHolders checks which holder is asked: one of the own zone first, then the one that has most; and
// another one when the first has gone or has no partition any more.
func TestHolders(t *testing.T) {
	p := openPartition(t, "p0")
	defer p.head.Close()
	var asked [3]atomic.Int64
	var o remote.Options
	o.Zone = "x"
	servers := make([]*httptest.Server, 3)
	var gone atomic.Bool
	for i, zone := range []string{"y", "x", "x"} {
		h := peer.New(peer.Options{Zone: zone, Partitions: func() []peer.Partition {
			if i == 1 && gone.Load() {
				return nil
			}
			return []peer.Partition{lagging{p, uint64(i)}}
		}})
		servers[i] = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == wire.PathSelect {
				asked[i].Add(1)
			}
			h.ServeHTTP(w, r)
		}))
		defer servers[i].Close()
		o.Peers = append(o.Peers, servers[i].Listener.Addr().String())
	}
	for range 20 {
		b := &model.Batch{Tenant: "a", Signal: model.Metrics}
		x := model.LabelsOf("__name__", "m")
		b.AddSample(x.Key(seed, model.Metrics), now, 1)
		b.Labels.Append(0, x)
		p.apply(b)
	}
	o.Refresh = time.Hour
	o.Log = &log{of: []remote.Progress{{Node: "p0", Epoch: 3, End: 18}}} // what all have
	far := remote.New(o)
	defer far.Close()
	ask := func() {
		t.Helper()
		cs, err := far.Select(context.Background(), fresh(&model.Request{Tenant: "a", Signal: model.Metrics, Range: model.Always()}))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cs {
			_ = c.Close()
		}
	}
	// lagging says that each server has i records less: the second has most of zone x.
	ask()
	if asked[1].Load() != 1 || asked[0].Load()+asked[2].Load() != 0 {
		t.Errorf("asked %d %d %d", asked[0].Load(), asked[1].Load(), asked[2].Load())
	}
	gone.Store(true) // its partition has moved, and the states are those from before
	ask()
	if asked[2].Load() != 1 {
		t.Error("the other holder of the zone was not asked")
	}
	servers[2].Close()
	ask()
	if asked[0].Load() != 1 {
		t.Error("the other zone was not asked")
	}
}

// lagging says that some of the last records were not applied.
type lagging struct {
	*partition
	by uint64
}

func (l lagging) Journal() wire.Journal {
	j := l.partition.Journal()
	j.To -= l.by
	return j
}

// leaving is a partition that is away when it is asked for its journal the third time: a holder is asked for
// its state, finds the partition, and has pinned its rows then.
type leaving struct {
	*partition
	asked *atomic.Int32
}

func (l leaving) Journal() wire.Journal {
	j := l.partition.Journal()
	if l.asked.Add(1) == 3 {
		j.From, j.Ready = math.MaxInt64, false
	}
	return j
}

// TestLeaves: a query whose partition leaves while its rows are pinned asks again.
func TestLeaves(t *testing.T) {
	p := leaving{openPartition(t, "p0"), new(atomic.Int32)}
	defer p.head.Close()
	server := httptest.NewServer(peer.New(peer.Options{Partitions: func() []peer.Partition { return []peer.Partition{p} }}))
	defer server.Close()
	s := setup{options: remote.Options{Peers: []string{server.Listener.Addr().String()}}}
	if err := s.over(t.Context(), &log{of: []remote.Progress{{Node: "p0", Epoch: 3, End: p.head.Applied()}}}, nil); err != nil {
		t.Error(err)
	}
	if n := p.asked.Load(); n < 6 {
		t.Errorf("the partition was asked for its journal %d times", n)
	}
}

// TestGapIsCountedOnce: a query that asks again and again for a holder is one refusal.
func TestGapIsCountedOnce(t *testing.T) {
	s, reg := manyRows(t), prometheus.NewPedanticRegistry()
	of := append(s.progress(0), remote.Progress{Node: "p9", Epoch: 3, Covered: 10, End: 12})
	if err := s.over(t.Context(), &log{of: of}, func(o *remote.Options) { o.Registerer = reg }); err == nil {
		t.Fatal("a journal without a holder was not missed")
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "shale_query_gaps_total" {
			if n := f.Metric[0].GetCounter().GetValue(); n != 1 {
				t.Errorf("one query counts as %v refusals", n)
			}
			return
		}
	}
	t.Error("the query was not counted")
}

// TestPagesAreFetchedOnce: a query that wants now the lines and now the metadata of chunk after chunk, as
// parsers do, asks a holder for each page once, whatever it asks first.
func TestPagesAreFetchedOnce(t *testing.T) {
	s := someRows(t, 40)
	var fetched atomic.Int64
	o := s.options
	o.Client = &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == wire.PathPage {
			fetched.Add(1)
		}
		return http.DefaultTransport.RoundTrip(r)
	})}
	far := remote.New(o)
	defer far.Close()
	set, err := read.New(read.Options{Sources: []read.Source{far}}).SelectText(t.Context(), &model.Request{
		Tenant: "a", Signal: model.Logs, Family: model.Text, Range: model.Always(), Quota: new(model.Quota), Cost: new(model.Cost),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	pages, chunks := map[model.TextPage]bool{}, 0
	for set.Next(t.Context()) {
		all, err := set.Chunks(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			pages[c.Page] = true
			for _, want := range []model.TextWant{model.WantLines, model.WantMetadata, 0, model.WantLengths} {
				var rows model.TextRows
				if chunks++; c.Page.ReadText(t.Context(), c.Index, want, &rows) != nil || len(rows.Times) != c.Rows {
					t.Fatalf("%d rows of %d", len(rows.Times), c.Rows)
				}
			}
		}
	}
	if err := set.Err(); err != nil || len(pages) == 0 || chunks <= 4*len(pages) || int(fetched.Load()) != len(pages) {
		t.Errorf("%d pages were fetched %d times for %d reads: %v", len(pages), fetched.Load(), chunks, err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestOverloaded fills a holder with open streams.
func TestOverloaded(t *testing.T) {
	p := openPartition(t, "p0")
	defer p.head.Close()
	server := httptest.NewServer(peer.New(peer.Options{MaxRequests: 2, Partitions: func() []peer.Partition { return []peer.Partition{p} }}))
	defer server.Close()
	far := remote.New(remote.Options{Peers: []string{server.Listener.Addr().String()}})
	defer far.Close()
	req := &model.Request{Tenant: "a", Signal: model.Logs, Range: model.Always()}
	var open []model.TextCursor
	for range 2 {
		cs, err := far.SelectText(context.Background(), fresh(req))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, cs...)
	}
	_, err := far.SelectText(context.Background(), fresh(req))
	if !errors.Is(err, wire.ErrOverloaded) || !errors.Is(err, model.ErrTransient) {
		t.Errorf("%v", err)
	}
	for _, c := range open {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	until := time.Now().Add(time.Minute)
	for {
		cs, err := far.SelectText(context.Background(), fresh(req))
		if err == nil {
			cs[0].Close()
			break
		}
		if !errors.Is(err, wire.ErrOverloaded) || time.Now().After(until) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestRefusals sends requests that a holder must refuse.
func TestRefusals(t *testing.T) {
	p := openPartition(t, "p0")
	defer p.head.Close()
	server := httptest.NewServer(peer.New(peer.Options{Partitions: func() []peer.Partition { return []peer.Partition{p} }}))
	defer server.Close()
	for _, c := range []struct {
		path, body string
		want       error
	}{
		{wire.PathSelect, `{`, model.ErrInvalid},
		{wire.PathSelect, `{"version":2}`, model.ErrInvalid},
		{wire.PathSelect, `{"version":1,"signal":9}`, model.ErrInvalid},
		{wire.PathSelect, `{"version":1,"signal":1,"matchers":[{"name":"a","op":"=~","value":"KA=="}]}`, model.ErrInvalid},
		{wire.PathSelect, `{"version":1,"signal":1,"matchers":[{"name":"a","op":"<","value":""}]}`, model.ErrInvalid},
		{wire.PathSelect, `{"version":1,"signal":1,"journals":[{"node":"p0","epoch":4}]}`, wire.ErrWrongJournal},
		{wire.PathSelect, `"` + strings.Repeat("x", wire.MaxRequest) + `"`, model.ErrLimit},
		{wire.PathPage, `{"session":"none"}`, model.ErrClosed},
		{wire.PathPage, `[]`, model.ErrInvalid},
	} {
		resp, err := http.Post("http://"+server.Listener.Addr().String()+c.path, "application/json", bytes.NewReader([]byte(c.body)))
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = wire.NewReader(resp.Body, func(int64) error { return nil }).Next()
		resp.Body.Close()
		if !errors.Is(err, c.want) {
			t.Errorf("%s %.60s: %v, want %v", c.path, c.body, err, c.want)
		}
	}
}

// TestNames resolves peers by name.
func TestNames(t *testing.T) {
	s := manyRows(t)
	host, port, err := net.SplitHostPort(s.options.Peers[0])
	if err != nil {
		t.Fatal(err)
	}
	err = s.over(context.Background(), &log{}, func(o *remote.Options) {
		o.Peers = []string{"dns+ingest.example:" + port, s.options.Peers[1]}
		o.Resolve = func(_ context.Context, name string) ([]string, error) {
			if name != "ingest.example" {
				return nil, fmt.Errorf("%s was looked up", name)
			}
			return []string{host, host}, nil
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// TestRedirect: a peer that redirects gets no second request, which would take the token to another host.
func TestRedirect(t *testing.T) {
	s := manyRows(t)
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	front := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer front.Close()
	err := s.over(context.Background(), nil, func(o *remote.Options) {
		o.Log, o.Peers = nil, []string{front.Listener.Addr().String()}
		o.Prepare = func(r *http.Request) { r.Header.Set("Authorization", "Bearer secret") }
	})
	if err == nil || asked.Load() > 0 {
		t.Errorf("%d requests followed the redirect, and the query got %v", asked.Load(), err)
	}
}

// TestPanics: a panic while holders are asked, for their state or for rows, ends the query.
func TestPanics(t *testing.T) {
	s := someRows(t, 10)
	for _, path := range []string{wire.PathState, wire.PathSelect, wire.PathText} {
		o := s.options
		o.Prepare = func(r *http.Request) {
			if r.URL.Path == path {
				panic("a hostile header")
			}
		}
		far := remote.New(o)
		req := &model.Request{
			Tenant: "a", Signal: model.Metrics, Range: model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64}, Quota: new(model.Quota), Cost: new(model.Cost),
		}
		var err error
		if path == wire.PathText {
			req.Signal = model.Logs
			_, err = far.SelectText(t.Context(), req)
		} else {
			_, err = far.Select(t.Context(), req)
		}
		if err == nil || !strings.Contains(err.Error(), "unexpected error: a hostile header") {
			t.Errorf("%s: %v", path, err)
		}
		far.Close()
	}
}
