package entry

import (
	"cmp"
	"slices"
)

// Coverage says up to which batch a ship has taken the rows of a journal to the bucket.
type Coverage struct {
	Node string
	// Epoch names the journal by its start time.
	Epoch uint64
	// From and To bound the sequence numbers that a ship adds. From follows the To of the ship before, and is
	// 1 in the first one. To is From-1 in a ship that adds none.
	From, To uint64
	// Appended is in Unix nanoseconds. All batches that were appended before it are covered. 0: unknown.
	Appended int64
	// Closed says that no batch will follow. Then no later ship of the journal is accepted.
	Closed bool
	// Leaders says which leader of a partition had taken the record To: its number, from 1. 0: unknown, or the
	// journal has no leaders. Whoever goes on can ask whether that record is still there.
	Leaders uint64
}

// Skip is a range of a journal that cannot be read, and that an operator has decided to do without.
type Skip struct {
	Node     string
	Epoch    uint64
	From, To uint64 // To is ToEnd if all is given up that the journal had
	Why      string
}

// ToEnd is the To of a [Skip] of all that a journal had. How much that was is not known.
const ToEnd = MaxNumber

// GivenUp is a Skip with what is known of the times at which its batches were appended, in Unix nanoseconds.
type GivenUp struct {
	Skip
	// After is the [Coverage.Appended] of the ship that has the Skip. 0: unknown.
	After int64
	// Before is when the Skip was decided.
	Before int64
}

// Journal names the journal of a node.
type Journal struct {
	Node  string
	Epoch uint64
}

// Journal returns the name of the journal.
func (v *Coverage) Journal() Journal { return Journal{v.Node, v.Epoch} }

// WithSkips returns what is given up together with what a ship says: its skips, its coverage and its time.
// The list that it gets is not changed.
func WithSkips(all *[]GivenUp, skips []Skip, covered []Coverage, committed int64) *[]GivenUp {
	if len(skips) == 0 {
		return all
	}
	more := *WithoutSkips(all, skips)
	for _, s := range skips {
		g := GivenUp{Skip: s, Before: committed}
		for i := range covered {
			if covered[i].Node == s.Node && covered[i].Epoch == s.Epoch {
				g.After = covered[i].Appended
			}
		}
		more = append(more, g)
	}
	slices.SortStableFunc(more, func(a, b GivenUp) int { return cmp.Compare(a.Before, b.Before) })
	return &more
}

// WithoutSkips returns what is given up without what a ship says that is not known any more. The list that it
// gets is not changed.
func WithoutSkips(all *[]GivenUp, skips []Skip) *[]GivenUp {
	if len(skips) == 0 {
		return all
	}
	less := slices.DeleteFunc(slices.Clone(*all), func(g GivenUp) bool { return slices.Contains(skips, g.Skip) })
	return &less
}
