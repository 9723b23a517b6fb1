package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/remote/wire"
)

// states are what the holders say that they hold.
type states struct {
	s  *Source
	mu sync.Mutex // held while they are asked, so that one query asks for all
	at time.Time
	of []holder

	failing sync.Mutex
	// failed says when a holder failed last, for avoidFor.
	failed map[string]time.Time
}

// avoidFor is how long a holder that failed is asked only for what no other one has.
const avoidFor = 10 * time.Second

// avoid notes that a holder has failed.
func (s *states) avoid(peer string) {
	s.failing.Lock()
	defer s.failing.Unlock()
	if s.failed == nil {
		s.failed = map[string]time.Time{}
	}
	for p, at := range s.failed { // addresses come and go
		if time.Since(at) > avoidFor {
			delete(s.failed, p)
		}
	}
	s.failed[peer] = time.Now()
}

// avoids reports whether a holder has failed lately.
func (s *states) avoids(peer string) bool {
	s.failing.Lock()
	defer s.failing.Unlock()
	at, failed := s.failed[peer]
	return failed && time.Since(at) <= avoidFor
}

// holder is a peer with its state, or with the error of asking for it.
type holder struct {
	peer  string // address
	state wire.State
	err   error
}

// stateTimeout bounds the question of one holder for its state, and shortTimeout that of one that has failed
// lately: queries wait for all answers, and a machine that has vanished must not hold up each of them.
const (
	stateTimeout = 2 * time.Second
	shortTimeout = 200 * time.Millisecond
)

// get returns the states, which are not older than Refresh; with fresh, not older than the call.
func (s *states) get(ctx context.Context, fresh bool) ([]holder, error) {
	asked := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of != nil && (s.at.After(asked) || !fresh && time.Since(s.at) < s.s.o.Refresh) {
		return s.of, nil
	}
	began := time.Now()
	peers, err := s.s.addresses(ctx)
	if err != nil {
		return nil, err
	}
	of := make([]holder, len(peers))
	var all sync.WaitGroup
	for i, p := range peers {
		all.Go(func() {
			avoided := s.avoids(p)
			var state wire.State
			err := model.Caught(func() (err error) {
				state, err = s.s.ask(ctx, p)
				return err
			})
			if err != nil && !avoided && ctx.Err() == nil { // not again, or the time would always be short
				s.avoid(p)
			}
			of[i] = holder{p, state, err}
		})
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err // the others' answers may be errors for the same reason
	}
	s.of, s.at = of, began
	return of, nil
}

// addresses returns the addresses of all peers.
func (s *Source) addresses(ctx context.Context) (all []string, err error) {
	for _, p := range s.o.Peers {
		name, ok := strings.CutPrefix(p, "dns+")
		if !ok {
			all = append(all, p)
			continue
		}
		host, port, err := net.SplitHostPort(name)
		if err != nil {
			return nil, fmt.Errorf("%w: peer %s: %v", model.ErrInvalid, p, err)
		}
		found, err := s.o.Resolve(ctx, host)
		if err != nil {
			return nil, fmt.Errorf("%w: peer %s: %v", model.ErrTransient, p, err)
		}
		for _, a := range found {
			all = append(all, net.JoinHostPort(a, port))
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// ask asks a holder for its state.
func (s *Source) ask(ctx context.Context, peer string) (state wire.State, err error) {
	most := stateTimeout
	if s.states.avoids(peer) {
		most = shortTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url(peer, wire.PathState), nil)
	if err != nil {
		return state, fmt.Errorf("%w: peer %s: %v", model.ErrInvalid, peer, err)
	}
	s.o.Prepare(r)
	resp, err := s.o.Client.Do(r)
	if err != nil {
		return state, fmt.Errorf("%w: peer %s: %v", model.ErrTransient, peer, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return state, fmt.Errorf("%w: peer %s: its state: %s", model.ErrTransient, peer, resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, wire.MaxRequest)).Decode(&state); err != nil {
		return state, fmt.Errorf("%w: peer %s: its state: %v", model.ErrTransient, peer, err)
	}
	if state.Version != wire.Version {
		return state, fmt.Errorf("%w: peer %s speaks version %d, and this process version %d", model.ErrTransient, peer, state.Version, wire.Version)
	}
	return state, nil
}

func (s *Source) url(peer, path string) string {
	if s.o.TLS {
		return "https://" + peer + path
	}
	return "http://" + peer + path
}

// Gap says that rows of a journal are neither in the bucket nor with a holder that could be asked. It is of
// class transient: mostly, a holder is starting.
type Gap struct {
	Node  string
	Epoch uint64
	// From and To are the first and the last sequence number that is missing. To is 0 if it is not known.
	From, To uint64
	// Why says what is known of the cause; it may be empty.
	Why string
	// moves says that no peer has failed.
	moves bool
	// reason is how metrics name it.
	reason string
}

// Error names the journal and the numbers.
func (g *Gap) Error() string {
	text := fmt.Sprintf("records %d to %d of journal %s of epoch %d are neither in the bucket nor with a process that can be asked", g.From, g.To, g.Node, g.Epoch)
	if g.To == 0 {
		text = fmt.Sprintf("records from %d of journal %s of epoch %d may be missing in the bucket, and no process can be asked", g.From, g.Node, g.Epoch)
	}
	if g.Why != "" {
		text += ": " + g.Why
	}
	return text
}

// Unwrap returns the class.
func (g *Gap) Unwrap() error { return model.ErrTransient }

// plan says which peer is asked for which journals.
type plan struct {
	peers []string
	needs map[string][]wire.Need
	// progress has the journals of the log.
	progress []Progress
	// others are all ready holders of each journal.
	others map[journalID][]string
}

// journalID names a journal.
type journalID struct {
	node  string
	epoch uint64
}

// choose makes a plan. Peers in without are not asked: they have failed just now.
func (s *Source) choose(ctx context.Context, fresh bool, without map[string]error) (*plan, error) {
	holders, err := s.states.get(ctx, fresh)
	if err != nil {
		return nil, err
	}
	best := map[journalID]*wire.Journal{}
	by := map[journalID]*holder{}
	others := map[journalID][]string{}
	var unheard error
	for i := range holders {
		h := &holders[i]
		if err := cmp.Or(h.err, without[h.peer]); err != nil {
			unheard = errors.Join(unheard, err)
			continue
		}
		for k := range h.state.Journals {
			j := &h.state.Journals[k]
			at := journalID{j.Node, j.Epoch}
			if j.Ready {
				others[at] = append(others[at], h.peer)
			}
			if j.Ready && (best[at] == nil || s.better(h, j, by[at], best[at])) {
				best[at], by[at] = j, h
			}
		}
	}
	p := &plan{needs: map[string][]wire.Need{}, others: others}
	need := map[journalID]wire.Need{}
	for at := range best {
		need[at] = wire.Need{Node: at.node, Epoch: at.epoch}
	}
	if s.o.Log == nil && unheard != nil {
		return nil, unheard
	}
	if s.o.Log != nil {
		if err := s.require(ctx, p, need, best, unheard); err != nil {
			return nil, err
		}
	}
	for at, n := range need {
		p.needs[by[at].peer] = append(p.needs[by[at].peer], n)
	}
	for peer, needs := range p.needs {
		slices.SortFunc(needs, func(a, b wire.Need) int {
			return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), strings.Compare(a.Node, b.Node))
		})
		p.peers = append(p.peers, peer)
	}
	// The rows of a later epoch are newer, and the order of cursors is that of peers.
	newest := func(peer string) uint64 { n := p.needs[peer]; return n[len(n)-1].Epoch }
	slices.SortFunc(p.peers, func(a, b string) int { return cmp.Or(cmp.Compare(newest(a), newest(b)), strings.Compare(a, b)) })
	return p, nil
}

// better reports whether a holder of a journal is to be asked instead of another one: rather one that has not
// failed lately, then one of the own zone, then the one that has applied more.
func (s *Source) better(h *holder, j *wire.Journal, than *holder, other *wire.Journal) bool {
	if failing := s.states.avoids(h.peer); failing != s.states.avoids(than.peer) {
		return !failing
	}
	if own := h.state.Zone == s.o.Zone; own != (than.state.Zone == s.o.Zone) {
		return own
	}
	return j.To > other.To
}

// require adds to the needs what the log knows, and refuses journals that lack a holder. A holder must have
// what Kafka had when it was asked last, about a second ago: it usually has, and one that lags would leave
// rows out.
func (s *Source) require(ctx context.Context, p *plan, need map[journalID]wire.Need, best map[journalID]*wire.Journal, unheard error) (err error) {
	isStrong := ctx.Value(strong{}) != nil
	if p.progress, err = s.o.Log.Journals(ctx, isStrong); err != nil {
		return err
	}
	gap := s.withoutHolder(p.progress, best, unheard)
	if gap != nil && !isStrong {
		// A holder that has shipped everything may have ended since the bucket was looked at.
		if p.progress, err = s.o.Log.Journals(ctx, true); err != nil {
			return err
		}
		gap = s.withoutHolder(p.progress, best, unheard)
	}
	if gap != nil {
		return gap
	}
	newest, asked := uint64(0), map[journalID]bool{}
	for _, x := range p.progress {
		at := journalID{x.Node, x.Epoch}
		newest = max(newest, x.Epoch)
		if x.Closed { // a holder may not have heard of that, and its rows would count as the newest
			delete(need, at)
			continue
		}
		if best[at] == nil {
			continue
		}
		if isStrong && x.Unknown != nil {
			return fmt.Errorf("journal %s of epoch %d: a query that must see everything cannot be answered: %w: %w", x.Node, x.Epoch, model.ErrTransient, x.Unknown)
		}
		// An end that is not known now was once, or is what the bucket covers.
		need[at] = wire.Need{Node: x.Node, Epoch: x.Epoch, After: x.Covered, AtLeast: x.End}
		asked[at] = true
	}
	for at := range need { // a holder may know of a later epoch than this process
		if !asked[at] && at.epoch <= newest {
			delete(need, at)
		}
	}
	return nil
}

// withoutHolder returns the first journal whose records are neither in the bucket nor with a holder, or nil.
func (s *Source) withoutHolder(progress []Progress, best map[journalID]*wire.Journal, unheard error) error {
	for _, x := range progress {
		if x.Closed || best[journalID{x.Node, x.Epoch}] != nil || x.Unknown == nil && x.Covered >= x.End {
			continue
		}
		g := &Gap{Node: x.Node, Epoch: x.Epoch, From: x.Covered + 1, To: x.End, moves: unheard == nil, reason: "no_holder"}
		if why := errors.Join(x.Unknown, unheard); why != nil {
			g.Why = strings.ReplaceAll(why.Error(), "\n", "; ")
		}
		if x.Unknown != nil {
			g.To = 0
		}
		return g
	}
	return nil
}

// check makes sure that the bucket covers what lies before the records that are held. The view of the bucket
// that the query takes after this is not older.
func (s *Source) check(ctx context.Context, held []wire.Journal, p *plan) error {
	if s.o.Log == nil {
		return nil
	}
	progress := p.progress
	for again := range 2 {
		covered := map[journalID]uint64{}
		for _, x := range progress {
			covered[journalID{x.Node, x.Epoch}] = x.Covered
		}
		var gap *Gap
		for _, j := range held {
			if c := covered[journalID{j.Node, j.Epoch}]; j.From > c+1 {
				gap = &Gap{Node: j.Node, Epoch: j.Epoch, From: c + 1, To: j.From - 1, reason: "not_covered"}
			}
		}
		if gap == nil {
			return nil
		}
		if again == 1 {
			return gap
		}
		var err error
		if progress, err = s.o.Log.Journals(ctx, true); err != nil {
			return err
		}
	}
	return nil
}
