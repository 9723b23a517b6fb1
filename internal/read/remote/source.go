package remote

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/remote/wire"
)

// Log knows the journals that queries must see. It is safe for concurrent use.
type Log interface {
	// Journals returns all journals that may have rows, and those that are closed. With fresh, what it returns
	// is not older than the call.
	//
	// What it calls covered is in each view of the bucket that a query takes afterwards.
	Journals(ctx context.Context, fresh bool) ([]Progress, error)
}

// Progress is how far a journal has come.
type Progress struct {
	Node  string
	Epoch uint64
	// Covered is the sequence number up to which blocks of the bucket have the rows.
	Covered uint64
	// End is the last sequence number that was acknowledged to a sender.
	End uint64
	// Unknown says why End is not known; nil: it is. Then a query needs a holder.
	Unknown error
	// Closed says that the bucket has all rows that it will ever have of the journal. What a holder has of it is
	// old, or given up.
	Closed bool
}

// Deletion hides rows of journals.
type Deletion struct {
	// Terms are JSON that holders read.
	Terms []byte
	// Fence returns its place in a journal: it hides rows of records before it. 0: it hides none.
	Fence func(node string, epoch uint64) uint64
}

// Options build a Source. Zero values take the defaults that are named.
type Options struct {
	// Peers are addresses of holders, host:port or dns+host:port. The latter stands for all addresses of the
	// name.
	Peers []string
	// Zone is where this process runs. Of two holders of a journal, the one in its zone is asked.
	Zone string
	// Log says what must be seen; nil: whatever the peers hold, and then each of them must answer.
	Log Log
	// Deletions returns those that hide rows of a tenant, as fresh as a query must see them; nil: none do.
	Deletions func(ctx context.Context, tenant string, s model.Signal) ([]Deletion, error)
	// Client sends the requests; nil: one of its own.
	Client *http.Client
	// Prepare adds to a request what its holder wants to see, such as a token; nil: nothing.
	Prepare func(*http.Request)
	// TLS says that holders speak HTTPS.
	TLS bool
	// Refresh is how old the states of holders may be (2 s).
	Refresh time.Duration
	// Stall is how long a holder may send nothing (30 s).
	Stall time.Duration
	// Resolve looks up a name; nil: the machine's resolver.
	Resolve    func(ctx context.Context, host string) ([]string, error)
	Registerer prometheus.Registerer
}

// Source asks holders. It is safe for concurrent use.
type Source struct {
	o       Options
	states  states
	metrics *metrics
}

// New returns a Source.
func New(o Options) *Source {
	if o.Client == nil {
		o.Client = &http.Client{Transport: &http.Transport{
			// HTTP/2 was tried: one stream is four times slower.
			Protocols:           http1(),
			DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			MaxIdleConnsPerHost: 16,
			IdleConnTimeout:     90 * time.Second,
			DisableCompression:  true,
		}}
	} // No holder redirects, and a redirect would take the token with it.
	own := *o.Client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	o.Client = &own

	if o.Prepare == nil {
		o.Prepare = func(*http.Request) {}
	}
	if o.Refresh == 0 {
		o.Refresh = 2 * time.Second
	}
	if o.Stall == 0 {
		o.Stall = 30 * time.Second
	}
	if o.Resolve == nil {
		o.Resolve = net.DefaultResolver.LookupHost
	}
	s := &Source{o: o, metrics: newMetrics(o.Registerer)}
	s.states.s = s
	return s
}

func http1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}

// Close closes idle connections.
func (s *Source) Close() { s.o.Client.CloseIdleConnections() }

// strong is the key of a mark in a context.
type strong struct{}

// Strong returns a context whose queries see everything that was acknowledged before they began. Holders that
// lag make them wait, up to their time. It needs a Log.
func Strong(ctx context.Context) context.Context { return context.WithValue(ctx, strong{}, true) }

// request returns a request of the read path as it goes on the wire, and the matchers that only this process
// can evaluate.
func request(req *model.Request) (*wire.Request, []model.Matcher) {
	ms, own := wire.EncodeMatchers(req.Matchers)
	return &wire.Request{
		Version: wire.Version, Tenant: req.Tenant, Signal: req.Signal, Family: req.Family, Matchers: ms,
		Min: req.Range.Min, Max: req.Range.Max, LabelsOnly: req.LabelsOnly,
		// Matchers need labels.
		Unlabelled: req.Unlabelled && len(own) == 0,
		Filter:     wire.EncodeFilter(req.TextFilter), Cells: req.Cells,
	}, own
}

// satisfies reports whether labels satisfy the matchers that holders cannot evaluate.
func satisfies(l model.Labels, own []model.Matcher) bool {
	for i := range own {
		if !own[i].Match(string(l.Get(own[i].Name))) {
			return false
		}
	}
	return true
}

// Select returns a cursor for each holder that is asked.
func (s *Source) Select(ctx context.Context, req *model.Request) ([]model.Cursor, error) {
	of, own := request(req)
	// The query counts no series that do not satisfy its own matchers, and none of a list that ends early.
	if req.Quota != nil && req.Signal == model.Metrics && !req.LabelsOnly && len(own) == 0 && req.Horizon == nil {
		of.MaxSeries = req.Quota.MaxSeries
	}
	streams, err := s.open(ctx, wire.PathSelect, of, req)
	if err != nil {
		return nil, err
	}
	cursors := make([]model.Cursor, len(streams))
	for i, st := range streams {
		cursors[i] = &cursor{series: series{st: st, own: own, unlabelled: of.Unlabelled}, family: max(req.Family, model.Samples),
			order: math.MaxUint64 - uint64(len(streams)-1-i)}
	}
	return cursors, nil
}

// SelectText returns a cursor for each holder that is asked.
func (s *Source) SelectText(ctx context.Context, req *model.Request) ([]model.TextCursor, error) {
	of, own := request(req)
	of.Family = model.Text
	streams, err := s.open(ctx, wire.PathText, of, req)
	if err != nil {
		return nil, err
	}
	cursors := make([]model.TextCursor, len(streams))
	for i, st := range streams {
		cursors[i] = &textCursor{series: series{st: st, own: own}, order: firstTextOrder + uint64(i)<<32}
	}
	return cursors, nil
}

// firstTextOrder is above the order numbers of all blocks, as for lines of a local head.
const firstTextOrder = 1 << 62

// LabelNames emits the names of labels that holders have.
func (s *Source) LabelNames(ctx context.Context, req *model.Request, emit func(name []byte) error) error {
	return s.lists(ctx, req, "", emit)
}

// LabelValues emits the values of a label that holders have.
func (s *Source) LabelValues(ctx context.Context, req *model.Request, name string, emit func(value []byte) error) error {
	if name == "" {
		return nil // no label has this name
	}
	return s.lists(ctx, req, name, emit)
}

func (s *Source) lists(ctx context.Context, req *model.Request, label string, emit func([]byte) error) error {
	of, own := request(req)
	if len(own) > 0 {
		r, some, err := s.settle(ctx, req, own)
		if err != nil || !some {
			return err
		}
		of, _ = request(r)
	}
	of.Label = label
	return s.strings(ctx, wire.PathLabels, of, req, emit)
}

// settle replaces matchers that holders cannot evaluate by the values that satisfy them, of those that
// holders have. It reports whether a series can satisfy them.
func (s *Source) settle(ctx context.Context, req *model.Request, own []model.Matcher) (*model.Request, bool, error) {
	r := *req
	r.Matchers = nil
	for _, m := range req.Matchers {
		if !slices.ContainsFunc(own, func(o model.Matcher) bool { return o.Name == m.Name && o.Value == m.Value && o.Op == m.Op }) {
			r.Matchers = append(r.Matchers, m)
		}
	}
	rest := r
	for _, m := range own {
		values := map[string]bool{}
		if m.Match("") {
			values[""] = true
		}
		of, _ := request(&rest)
		of.Label = m.Name
		err := s.strings(ctx, wire.PathLabels, of, req, func(v []byte) error {
			if m.Match(string(v)) {
				values[string(v)] = true
			}
			return nil
		})
		if err != nil {
			return nil, false, err
		}
		if len(values) == 0 {
			return nil, false, nil
		}
		r.Matchers = append(r.Matchers, model.Matcher{
			Name: m.Name, Op: model.MatchRegexp, Set: slices.Sorted(maps.Keys(values)), Match: func(v string) bool { return values[v] },
		})
	}
	return &r, true, nil
}

// Names returns the names of series that have no other label.
func (s *Source) Names(ctx context.Context, req *model.Request) (sets []model.NameSet, release func(), err error) {
	of, own := request(req)
	if len(own) > 0 {
		return nil, nil, fmt.Errorf("%w: names with matchers", model.ErrInvalid)
	}
	list := &model.NameList{Times: model.Always()}
	charged := int64(0)
	release = func() { _ = req.Quota.TakeBytes(-charged) } // giving back never fails
	err = s.strings(ctx, wire.PathNames, of, req, func(name []byte) error {
		n := list.AddName(name)
		if err := req.Quota.TakeBytes(n); err != nil {
			return err
		}
		charged += n
		return nil
	})
	if err != nil {
		release()
		return nil, nil, err
	}
	list.Sort()
	return []model.NameSet{list}, release, nil
}

// strings calls emit with each string of the answers.
func (s *Source) strings(ctx context.Context, path string, of *wire.Request, req *model.Request, emit func([]byte) error) error {
	streams, err := s.open(ctx, path, of, req)
	if err != nil {
		return err
	}
	for _, st := range streams {
		for err == nil {
			var kind wire.Kind
			var body []byte
			if kind, body, err = st.next(ctx); err != nil {
				break
			}
			if kind == wire.Trailer {
				err = st.end(body)
				break
			}
			if kind != wire.Strings {
				err = st.damaged("expected strings, got a frame of kind %d", kind)
				break
			}
			var failed error
			err = wire.EachString(body, func(x []byte) error {
				failed = emit(x)
				return failed
			})
			if failed == nil {
				err = st.named(err)
			}
		}
		st.close()
	}
	return err
}
