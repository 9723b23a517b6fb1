package victorialogs

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/recent"
	"github.com/shaledb/shale/internal/read/victorialogs/watch"
	"github.com/shaledb/shale/internal/write/logs"
)

// Options build a Source.
type Options struct {
	Settings Settings
	Seed     model.KeySeed
	// Rules say what labels and levels lines get that lack them, as those that are received.
	Rules logs.Rules
	// Changed is told that lines of a tenant in a range may be others than before, if it is set. ClosedAfter
	// is the age from which lines are expected to change no more.
	Changed     func(tenant string, r model.TimeRange)
	ClosedAfter time.Duration
	// Shared is the tiers of the cache after memory, for counted rows; nil: none.
	Shared cache.Secondary
	// Now returns the time in Unix nanoseconds; nil means the machine's clock.
	Now        func() int64
	Registerer prometheus.Registerer
	countLimit time.Duration // of one count of lines; 0: the usual one
}

// Source is a VictoriaLogs server as a source of lines. It is safe for concurrent use.
type Source struct {
	settings Settings
	client   *client
	metrics  *metrics
	streams  *streamNames
	watch    *watch.Watch
	shared   *shared // nil: nothing is shared
	// followEvery is the time between two looks for new lines.
	followEvery time.Duration
	derives     bool // service_name may be made of other labels
	asksNewest  bool // lines are counted from the end of a range on if the newest are wanted
	// addsOffset says that buckets of time begin at their offset after multiples of their width, not before.
	addsOffset atomic.Bool
	refusals   recent.Pauses // of forms of requests
	// noGroups is until when streams are not grouped, as a time since the source began.
	noGroups    atomic.Int64
	began       time.Time
	groupedRows uint64
	sparseLines uint64 // MaxUint64: however many there are
	groupings   groupings
	listings    listings
	flights     flights
	samples     samples
	rates       recent.Rates // of the newest lines of filters, in lines a nanosecond
	// lineBytes is about what a line has: as in the last pages, of which the newest counts a quarter.
	lineBytes   atomic.Int64
	copiesPause time.Duration
}

// New returns a Source. It does not ask the server.
func New(o Options) *Source {
	s := &Source{settings: o.Settings, streams: newStreamNames(o.Seed, o.Rules), derives: len(o.Rules.ServiceNames) > 0, asksNewest: true, began: time.Now(), groupedRows: groupedRows, sparseLines: sparseLines, copiesPause: copiesPause}
	s.metrics = newMetrics(o.Registerer, func() bool { return s.client.breaker.Open() }, func() int { return s.client.pace.Limit() })
	s.client = newClient(&s.settings, s.metrics)
	s.samples.values.MaxBytes = sampledBytes
	s.followEvery, s.listings.every = followEvery, s.settings.CheckEvery
	s.lineBytes.Store(firstLineBytes)
	s.flights = flights{of: map[string]*flight{}, running: map[string]int{}, client: s.client, joined: s.metrics.joined.Inc, paused: s.metrics.pausedFor, most: flightBytes, all: flightsBytes, wait: flightWait, linger: companyWait, limit: flightLimit}
	s.flights.ctx, s.flights.close = context.WithCancelCause(context.Background())
	if o.Shared != nil {
		s.shared = &shared{tier: o.Shared, result: func(outcome string) { s.metrics.shared.WithLabelValues(outcome).Inc() }}
	}
	s.watch = s.newWatch(&o)
	return s
}

func (s *Source) newWatch(o *Options) *watch.Watch {
	w := watch.Options{
		Count: s.client.countLines, Prove: s.client.countTimes, Counts: countConnections,
		Counted: func(outcome string) { s.metrics.counts.WithLabelValues(outcome).Inc() },
		Proved:  func(outcome string) { s.metrics.proofs.WithLabelValues(outcome).Inc() },
		Every:   s.settings.CheckEvery, Lag: o.ClosedAfter, Limit: o.countLimit, Now: o.Now,
	}
	if s.shared != nil {
		w.Summed = s.shared.summed
	}
	w.Note = func(a Account, r model.TimeRange) {
		s.metrics.changes.Inc()
		if o.Changed == nil {
			return
		}
		for _, tenant := range s.settings.Accounts.tenantsOf(a) {
			o.Changed(tenant, r)
		}
	}
	return watch.New(w)
}

// Close ends what runs in the background and closes the connections.
func (s *Source) Close() error {
	s.watch.Close()
	s.flights.stop()
	s.client.close()
	return nil
}

// account returns what a request may read, and whether there is anything for it.
func (s *Source) account(req *model.Request) (access, bool) {
	if req.Signal != model.Logs || req.Range.Min > req.Range.Max {
		return access{}, false
	}
	a, ok := s.settings.accessOf(req.Tenant)
	if !ok {
		s.metrics.denied.Inc()
		req.Cost.Warnings.Add("lines of VictoriaLogs are left out: tenant " + req.Tenant + " has no account in victorialogs.accounts")
		return a, false
	}
	if req.Cost.Bill == nil && s.watch.Covers(a.Account, req.Range) {
		req.Cost.Reach.AddFurther(req.Range)
		return a, true
	}
	// Nothing will tell when a line arrives there, so that a response holds for this moment only, or for as long
	// as a count does if it may lag.
	if req.Cost.MayLag && s.settings.CheckEvery > 0 {
		req.Cost.Reach.Lasts(s.watch.Now(), int64(s.settings.CheckEvery))
	} else {
		req.Cost.Reach.Bound(noTime)
	}
	return a, true
}

// Kept is for a caller that has kept results and does not read the lines. It adds to the cost of the request
// what reading them would have added.
func (s *Source) Kept(req *model.Request) { s.account(req) }

// Check says whether Changed has been told of all changes of the lines of some tenants from a time on, but
// for those within the interval of checks, and up to which time that holds. It may ask the server, and wait.
func (s *Source) Check(ctx context.Context, tenants []string, r model.TimeRange) (until int64, ok bool) {
	var accounts []Account
	for _, tenant := range tenants {
		if a, has := s.settings.Accounts.Of(tenant); has && !slices.Contains(accounts, a) {
			accounts = append(accounts, a)
		}
	}
	if len(accounts) == 0 {
		return math.MaxInt64, true
	}
	return s.watch.Check(ctx, accounts, r)
}

// noTime is before all times.
const noTime = -1 << 63

// stream is a stream of labels, which may be several streams of VictoriaLogs.
type stream struct {
	*logs.Stream
	spellings []string
}

// selected returns the streams of a request that have lines in its range, sorted by key.
func (s *Source) selected(ctx context.Context, a access, req *model.Request) ([]*stream, error) {
	f := s.filterOf(req)
	set := newStreamSet(s, req)
	err := s.client.query(ctx, a, kindStreams, f.in(req.Range)+" | uniq by (_stream)", func(row []field) error {
		_, err := set.add(valueOf(row, "_stream"))
		return err
	})
	if err != nil {
		set.release()
		return nil, err
	}
	defer set.release()
	return set.sorted(), nil
}

// Select returns the series of logs without rows.
func (s *Source) Select(ctx context.Context, req *model.Request) ([]model.Cursor, error) {
	a, ok := s.account(req)
	if !ok {
		return nil, nil
	}
	all, err := s.selected(ctx, a, req)
	if err != nil {
		return nil, err
	}
	return []model.Cursor{&seriesCursor{all: all, at: -1}}, nil
}

// LabelNames emits the names of the labels of the selected streams.
func (s *Source) LabelNames(ctx context.Context, req *model.Request, emit func(name []byte) error) error {
	return s.Labels(ctx, req, func(name, _ []byte) error { return emit(name) })
}

// LabelValues emits the values of one label of the selected streams.
func (s *Source) LabelValues(ctx context.Context, req *model.Request, name string, emit func(value []byte) error) error {
	return s.Labels(ctx, req, func(n, value []byte) error {
		if string(n) != name {
			return nil
		}
		return emit(value)
	})
}

// Labels calls visit with the labels of the selected streams. It asks for their list once.
func (s *Source) Labels(ctx context.Context, req *model.Request, visit func(name, value []byte) error) error {
	if req.Cost.Bill != nil {
		s.explain(req)
		return nil
	}
	a, ok := s.account(req)
	if !ok {
		return nil
	}
	all, err := s.selected(ctx, a, req)
	if err != nil {
		return err
	}
	for _, st := range all {
		for name, value, rest, ok := st.Labels.Next(); ok; name, value, rest, ok = rest.Next() {
			if err := visit(name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// streamSet gathers the streams of a request.
type streamSet struct {
	source *Source
	req    *model.Request
	of     map[string]*stream // by spelling; nil: not wanted
	by     map[model.Key]*stream
	bytes  int64
}

func newStreamSet(s *Source, req *model.Request) *streamSet {
	return &streamSet{source: s, req: req, of: map[string]*stream{}, by: map[model.Key]*stream{}}
}

// streamBytes is about what a stream takes in memory besides its labels and its spelling.
const streamBytes = 300

// add returns the stream of a spelling, or nil if the request does not want it.
func (t *streamSet) add(spelling []byte) (*stream, error) {
	st, known := t.of[string(spelling)]
	if known {
		return st, nil
	}
	found, err := t.source.streams.of(spelling)
	if err != nil {
		return nil, err
	}
	size := int64(len(spelling)) + streamBytes
	if found != nil {
		size += int64(len(found.Labels))
	}
	if err := t.req.Quota.TakeBytes(size); err != nil {
		return nil, err
	}
	t.bytes += size
	own := string(spelling)
	if found == nil || !matches(t.req.Matchers, found.Labels) {
		t.of[own] = nil
		return nil, nil
	}
	if st = t.by[found.Key]; st == nil {
		st = &stream{Stream: found}
		t.by[found.Key] = st
	} else if !bytes.Equal(st.Labels, found.Labels) {
		return nil, fmt.Errorf("%w: the streams %s and %s have the same key", model.ErrCorrupt, st.Labels, found.Labels)
	}
	st.spellings = append(st.spellings, own)
	t.of[own] = st
	return st, nil
}

// lookUp returns the stream of a spelling that was added, or nil.
func (t *streamSet) lookUp(spelling string) *stream { return t.of[spelling] }

func (t *streamSet) sorted() []*stream {
	all := make([]*stream, 0, len(t.by))
	for _, st := range t.by {
		all = append(all, st)
	}
	slices.SortFunc(all, func(a, b *stream) int { return a.Key.Compare(b.Key) })
	return all
}

func (t *streamSet) release() {
	_ = t.req.Quota.TakeBytes(-t.bytes) // giving back does not fail
	t.bytes = 0
}

func matches(all []model.Matcher, l model.Labels) bool {
	for i := range all {
		if !all[i].Match(string(l.Get(all[i].Name))) {
			return false
		}
	}
	return true
}

// seriesCursor walks streams without their lines.
type seriesCursor struct {
	all []*stream
	at  int
}

func (c *seriesCursor) Next(context.Context) bool {
	c.at++
	return c.at < len(c.all)
}

func (c *seriesCursor) Key() model.Key                                { return c.all[c.at].Key }
func (c *seriesCursor) Labels() model.Labels                          { return c.all[c.at].Labels }
func (c *seriesCursor) AppendRows(context.Context, *model.Rows) error { return nil }
func (c *seriesCursor) Order() uint64                                 { return 0 }
func (c *seriesCursor) Err() error                                    { return nil }
func (c *seriesCursor) Close() error                                  { return nil }

// hides returns the time before which retention hides rows of a stream.
func hides(req *model.Request, l model.Labels) int64 {
	if !req.Horizon.MayHide(req.Range.Min) {
		return req.Range.Min
	}
	return max(req.Range.Min, req.Horizon.Before(l))
}
