package pipeline

import (
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/graphite/rules"
)

// decision is what the rules say of a path.
type decision struct {
	// dropped is the reason why points are dropped, or empty.
	dropped string
	// path is what the path is rewritten to; nil: it stays.
	path []byte
	// failed is the error of a rule, for the log.
	failed error
}

// passes is the decision about paths to which no rule applies, so that they share one.
var passes = new(decision)

// bytes is about how much memory a decision takes in the table.
func (d *decision) bytes() int64 {
	const entry = 64 // of the table
	if d == passes {
		return entry
	}
	return entry + 96 + int64(cap(d.path))
}

// decide works out what the rules say of a path.
func decide(r *rules.Rules, path string) *decision {
	d, err := tryDecide(r, path)
	if err != nil {
		return &decision{dropped: write.ReasonRuleFailed, failed: err}
	}
	return d
}

func tryDecide(r *rules.Rules, path string) (*decision, error) {
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
	if now, err = r.Rewriting.Post.Apply(now); err != nil {
		return nil, err
	}
	if now == path {
		return passes, nil
	}
	return &decision{path: []byte(now)}, nil
}
