package progress

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/remote"
	"github.com/shaledb/shale/internal/read/results"
	"github.com/shaledb/shale/internal/store/catalog"
)

// Settled tells a process with the role query which results it may keep: those of times that only the bucket
// has rows of. The catalogue tells what changes there. So a query asks ingesters first whether they have rows
// of these times, such as late ones. It asks as it would for the rows themselves: whichever process has a
// partition now answers, and has at least what the query must see.
type Settled struct {
	// Holds asks ingesters whether they have rows of a range.
	Holds     func(ctx context.Context, tenant string, s model.Signal, r model.TimeRange) (bool, error)
	ShipEvery time.Duration
	Now       func() int64
	// Losses returns what operators have given up. A result may have rows of it that an ingester had read. So
	// Changed is called when something else is given up than before: all kept results end.
	Losses  func() []catalog.GivenUp
	Changed func()

	losing sync.Mutex
	lost   map[catalog.Skip]bool // what was given up at the last question

	mu sync.Mutex
	// refused has the last questions after which results could not be used. It never has those after which
	// they could: rows may have come since.
	refused map[subject]refusal
}

// subject is what a question is about.
type subject struct {
	tenant string
	signal model.Signal
}

// refusal is the end of a question.
type refusal struct {
	at  int64           // when it was answered
	of  model.TimeRange // of which ingesters have rows
	err error           // why they gave no answer; then of says nothing
}

// settledAges are how old rows are, in intervals of ships, that ingesters mostly have no more. If they have
// some of one age, a query tries the next.
var settledAges = [...]int64{2, 12, 72}

const (
	// refusedFor is how long no question is repeated: a dashboard has many parts, and each asks.
	refusedFor = int64(time.Second)
	// patience bounds a question. While an ingester lags the query waits for it as well, and must not wait
	// twice as long.
	patience = time.Second
	// mostRefused bounds the questions that are remembered.
	mostRefused = 4096
)

// Settled returns [Settled.Until] for what ingesters hold.
func (l *Log) Settled(ingesters *remote.Source, shipEvery time.Duration, now func() int64, changes *results.Changes) func(context.Context, []string, model.Signal, model.TimeRange) (int64, bool) {
	return (&Settled{
		Holds: ingesters.Holds, ShipEvery: shipEvery, Now: now, Changed: changes.All,
		Losses: func() []catalog.GivenUp { return append(l.Lost(), l.o.Catalog.GivenUp()...) },
	}).Until
}

// Until returns the time up to which no ingester has rows of a range that the bucket has not. It returns
// false if there is none, or if that cannot be told soon: then the query meets the same error.
func (x *Settled) Until(ctx context.Context, tenants []string, s model.Signal, r model.TimeRange) (int64, bool) {
	x.lose()
	for _, age := range settledAges {
		to := min(r.Max, x.Now()-age*int64(x.ShipEvery))
		if to <= r.Min {
			return 0, false
		}
		held, err := x.anyHeld(ctx, tenants, s, model.TimeRange{Min: r.Min, Max: to})
		if err != nil {
			return 0, false
		}
		if !held {
			return to, true
		}
	}
	return 0, false
}

// lose looks at what is given up. What an ingester records of a topic that was given up is the same loss.
func (x *Settled) lose() {
	x.losing.Lock()
	defer x.losing.Unlock()
	lost := map[catalog.Skip]bool{}
	for _, g := range x.Losses() {
		lost[g.Skip] = true
	}
	if !maps.Equal(lost, x.lost) {
		x.Changed()
		x.lost = lost
	}
}

// anyHeld reports whether ingesters have rows of a range of any of the tenants.
func (x *Settled) anyHeld(ctx context.Context, tenants []string, s model.Signal, r model.TimeRange) (bool, error) {
	for _, tenant := range tenants {
		if held, err := x.held(ctx, subject{tenant, s}, r); held || err != nil {
			return held, err
		}
	}
	return false, nil
}

// held reports whether ingesters have rows of a range.
func (x *Settled) held(ctx context.Context, of subject, r model.TimeRange) (bool, error) {
	x.mu.Lock()
	last, ok := x.refused[of]
	x.mu.Unlock()
	if age := x.Now() - last.at; ok && age >= 0 && age < refusedFor {
		if last.err != nil {
			return false, last.err
		}
		if last.of.Min >= r.Min && last.of.Max <= r.Max {
			return true, nil
		}
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	held, err := x.Holds(asking, of.tenant, of.signal, r)
	if (held || err != nil) && ctx.Err() == nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.refused == nil || len(x.refused) >= mostRefused {
			x.refused = map[subject]refusal{}
		}
		x.refused[of] = refusal{at: x.Now(), of: r, err: err}
	}
	return held, err
}
