package compact

import (
	"sync"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// waiting knows since when whole runs have seen each block, and so whether they had their chance to make its
// rollups. A whole run is one that did all that was due: it was not cut at MaxMerges, and nothing failed but
// what is wrong with single blocks. A run that could not work, such as one without room or without the
// bucket, gives no rollups up.
// It is not kept over a restart: blocks that have no rollups for a reason then stay for another week.
type waiting struct {
	mu sync.Mutex
	// rules is the id of the rules by which all of this counts; others begin with nothing.
	rules string
	// since and whole are when the first and the last whole run have begun; 0: there was none.
	since, whole int64
	// blocks maps each block of metrics to the begin of the first whole run that saw it.
	blocks map[string]int64
	// made says that some rules of this process make rollups, or did.
	made bool
}

// use notes the rules of now.
func (w *waiting) use(r *Rollups) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made = w.made || r.Makes
	if w.rules != r.ID {
		w.rules, w.since, w.whole = r.ID, 0, 0
		clear(w.blocks)
	}
}

// ended notes the blocks that a whole run has seen. It reports whether it was the first by these rules.
func (w *waiting) ended(rules string, began int64, seen map[string]bool) (first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rules != rules {
		return false // they changed during the run
	}
	if first = w.since == 0; first {
		w.since = began
	}
	w.whole = began
	for id := range w.blocks {
		if !seen[id] {
			delete(w.blocks, id)
		}
	}
	for id := range seen {
		if _, ok := w.blocks[id]; !ok {
			w.blocks[id] = began
		}
	}
	return first
}

// over reports whether whole runs have seen a block for a week.
func (w *waiting) over(id string, now int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	since, ok := w.blocks[id]
	return ok && min(now, w.whole)-since >= int64(rollupGrace)
}

// lastWhole returns when the last whole run has begun, and false if there was none.
func (w *waiting) lastWhole() (int64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.whole, w.since != 0
}

// counts reports whether expired rows wait for rollups: always by rules that make some. A file of schemas
// that lost its archives may be half written, so other rules have to stay for a week of whole runs if
// anything was made before.
func (w *waiting) counts(r *Rollups, s *catalog.State, now int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Makes {
		return true
	}
	if !w.made && len(s.Rollups)+len(s.Unrolled) == 0 {
		return false
	}
	return w.since == 0 || min(now, w.whole)-w.since < int64(rollupGrace)
}

// keepsRows reports whether rows of metrics stay until all rows of their block have expired.
func (c *Compactor) keepsRows() bool {
	rules := c.rollups()
	if rules == nil {
		return false
	}
	s := c.o.Catalog.State()
	return c.waiting.counts(rules, &s, c.o.Now())
}

// noteWhole notes which blocks a whole run has seen. A plain compactor makes no rollups, so by rules that
// make some its runs give no block its chance.
func (c *Compactor) noteWhole(began int64) {
	rules := c.rollups()
	if rules == nil || c.o.Plain && rules.Makes {
		return
	}
	s := c.o.Catalog.State()
	seen := make(map[string]bool)
	for i := range s.Blocks {
		if b := &s.Blocks[i]; b.Signal == model.Metrics {
			seen[b.ID] = true
		}
	}
	if c.waiting.ended(rules.ID, began, seen) && !rules.Makes && len(s.Rollups) > 0 {
		c.o.Logger.Warn("no schema has rollups any more: in a week, points stop waiting for rollups, and rollups without points expire by the schemas of that time",
			"blocks", len(s.Rollups))
	}
}
