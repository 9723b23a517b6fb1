package compact

import (
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/deletion"
)

// TestSeparated: a deletion that can still be cancelled is not applied, nor are later ones, and it keeps
// apart blocks of which one has rows from before it and one has not.
func TestSeparated(t *testing.T) {
	const now = 100
	block := func(tenant string, lo, hi, generation uint64) catalog.Block {
		b := catalog.Block{
			Signal: model.Logs, Tenants: []string{tenant}, TenantCount: 1, Range: model.TimeRange{Min: 0, Max: 9},
			Sources: []catalog.Source{{Node: "n", SeqLo: lo, SeqHi: hi}}, Generation: generation,
		}
		b.Complete()
		return b
	}
	delete := func(generation, seq uint64, notBefore int64) *catalog.Deletion {
		return &catalog.Deletion{
			Generation: generation, Fences: []catalog.Fence{{Node: "n", Seq: seq}},
			Deletion: deletion.Deletion{Signal: model.Logs, Tenant: "a", Range: model.Always(), NotBefore: notBefore},
		}
	}
	all := catalog.Deletions{delete(1, 10, 0), delete(2, 20, now+1), delete(3, 30, 0)}
	before, between, after := block("a", 1, 9, 0), block("a", 11, 19, 1), block("a", 31, 40, 3)
	for what, test := range map[string]struct {
		inputs     []catalog.Block
		applied    int
		generation uint64
		separated  bool
	}{
		"before":             {[]catalog.Block{before}, 1, 1, false},
		"before and between": {[]catalog.Block{before, between}, 1, 1, false},
		"between and after":  {[]catalog.Block{between, after}, 1, 1, true},
		"before and after":   {[]catalog.Block{before, after}, 1, 1, true},
		"after":              {[]catalog.Block{after}, 3, 3, false},
		"another tenant":     {[]catalog.Block{block("b", 1, 9, 0), block("b", 31, 40, 3)}, 3, 3, false},
		"mixed tenants":      {[]catalog.Block{before, block("b", 31, 40, 3)}, 1, 1, false},
		"carried out":        {[]catalog.Block{block("a", 1, 9, 3), after}, 3, 3, false},
		"of both kinds":      {[]catalog.Block{block("a", 1, 9, 3), before}, 1, 1, true},
	} {
		apply, _, generation := split(test.inputs, all, now)
		if got := separated(test.inputs, all, now); len(apply) != test.applied || generation != test.generation || got != test.separated {
			t.Errorf("%s: %d are applied, generation %d, separated %t; want %+v", what, len(apply), generation, got, test)
		}
		if separated(test.inputs, all, now+1) {
			t.Errorf("%s: separated although every deletion can be carried out", what)
		}
	}
}
