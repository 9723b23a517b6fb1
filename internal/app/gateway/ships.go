package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/journal/state"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/catalog/entry"
	"github.com/shaledb/shale/internal/store/topics"
)

// shipLog follows how far partitions are shipped. It reads no other records than those of ships, and of these
// only the last ones: a gateway needs no catalogue.
type shipLog struct {
	b catalog.Reader
	// last is the number of the last ship that was read.
	last    uint64
	covered map[state.Partition]catalog.Coverage
}

func newShipLog(b catalog.Reader) *shipLog {
	return &shipLog{b: b, covered: map[state.Partition]catalog.Coverage{}}
}

// atOnce is how many ships are read at one time.
const atOnce = 64

// poll reads the ships since the last time. The first time, it goes back until it has read one of each of
// some partitions, or those that were committed before a time in Unix nanoseconds. The last ship of a journal
// is always kept.
func (s *shipLog) poll(ctx context.Context, of []state.Partition, since int64) error {
	var ids []string
	err := s.b.List(ctx, catalog.RecordPrefix+entry.ShipPrefix, func(name string, _ int64) error {
		id := strings.TrimSuffix(strings.TrimPrefix(name, catalog.RecordPrefix), ".json")
		if entry.ShipNumber(id) > s.last {
			ids = append(ids, id)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("log of ships: %w", err)
	}
	slices.SortFunc(ids, func(a, b string) int { // the last one first
		return cmp.Compare(entry.ShipNumber(b), entry.ShipNumber(a))
	})
	first := s.last == 0
	found := map[state.Partition]catalog.Coverage{}
	last := s.last
	for some := range slices.Chunk(ids, atOnce) {
		ships := map[string]*catalog.Stored{}
		if _, err := catalog.ReadListed(ctx, s.b, some, ships); err != nil {
			return fmt.Errorf("log of ships: %w", err)
		}
		old := false
		for id, r := range ships { // those that were collected meanwhile are missing: later ones cover as much
			last = max(last, entry.ShipNumber(id))
			old = old || r.Committed < since
			for _, v := range r.Covered {
				p, ok := partitionOf(&v)
				if before, read := found[p]; ok && (!read || before.To < v.To || v.Closed) {
					found[p] = v
				}
			}
		}
		all := !slices.ContainsFunc(of, func(p state.Partition) bool { _, ok := found[p]; return !ok })
		if first && (all || old) {
			break
		}
	}
	s.last = last
	for p, v := range found {
		if s.covered[p].To <= v.To {
			s.covered[p] = v
		}
	}
	return nil
}

// partitionOf returns the partition whose journal is covered; false: it is the journal of a server with the
// role all.
func partitionOf(v *catalog.Coverage) (p state.Partition, ok bool) {
	var n int32
	if _, err := fmt.Sscanf(v.Node, "p%d", &n); err != nil || n < 0 || topics.Node(n) != v.Node {
		return p, false
	}
	return state.Partition{Epoch: v.Epoch, Number: n}, true
}
