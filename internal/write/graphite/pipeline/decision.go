package pipeline

import (
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/graphite/aggregate"
	"github.com/shaledb/shale/internal/write/graphite/rules"
)

// decision is what the rules say of a path.
type decision struct {
	// dropped is the reason why points are dropped, or empty.
	dropped string
	// path is what the path is rewritten to; nil: it stays.
	path []byte
	// aggregates are those that points are given to, even if they are dropped then.
	aggregates []aggregate.Target
	// relays are the destinations that points are sent to, by their index.
	relays []int
	// isShared means that many paths have this decision, which consists of relays.
	isShared bool
	// failed is the error of a rule, for the log.
	failed error
}

// passes is the decision about paths to which no rule applies, so that they share one.
var passes = new(decision)

// bytes is about how much memory a decision takes in the table.
func (d *decision) bytes() int64 {
	const entry = 64 // of the table
	if d == passes || d.isShared {
		return entry
	}
	n := entry + 160 + int64(cap(d.path)) + 8*int64(cap(d.relays))
	for i := range d.aggregates {
		n += 48 + int64(len(d.aggregates[i].Path))
	}
	return n
}

// decide works out what the rules say of a path. If forward is false, only aggregates are stored.
func decide(r *rules.Rules, forward bool, path string) *decision {
	d, err := tryDecide(r, forward, path)
	if err != nil {
		return &decision{dropped: write.ReasonRuleFailed, failed: err}
	}
	return d
}

func tryDecide(r *rules.Rules, forward bool, path string) (*decision, error) {
	if listed, err := r.Blacklist.Match(path); err != nil || listed {
		return &decision{dropped: write.ReasonBlacklisted}, err
	}
	if len(r.Whitelist) > 0 {
		if listed, err := r.Whitelist.Match(path); err != nil || !listed {
			return &decision{dropped: write.ReasonNotWhitelisted}, err
		}
	}
	now, err := r.Rewriting.Pre.Apply(path)
	if err != nil {
		return nil, err
	}
	d := new(decision)
	for _, a := range r.Aggregations {
		out, ok, err := a.Output(now)
		if err != nil {
			return nil, err
		}
		if ok {
			d.aggregates = append(d.aggregates, aggregate.Target{Path: out, Method: a.Method, Frequency: a.Frequency})
			// As in carbon, a path that is its own aggregate would otherwise be stored by both.
			forward = forward && out != now
		}
	}
	if !forward {
		d.dropped = write.ReasonNotForwarded
		return d, nil
	}
	if now, err = r.Rewriting.Post.Apply(now); err != nil {
		return nil, err
	}
	if r.Router != nil {
		if d.relays, err = r.Router.Route(now); err != nil {
			return nil, err
		}
	}
	if now != path {
		d.path = []byte(now)
	} else if d.aggregates == nil && d.relays == nil {
		return passes, nil
	}
	return d, nil
}
