package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/shaledb/shale/internal/model"
	del "github.com/shaledb/shale/internal/store/deletion"
)

// Deletion hides rows of blocks that hold rows from before it. Readers apply it; compaction later drops the
// rows.
type Deletion struct {
	del.Deletion
	// Generation numbers deletions without gaps, from 1. The catalogue assigns it.
	Generation uint64
	// Fences say for each journal which rows came before the deletion.
	Fences []Fence
	// Committed is in Unix nanoseconds.
	Committed int64
}

// Matcher is a matcher that can be stored.
type Matcher = del.Matcher

// Fence is the place of a deletion in a journal: it hides rows of records with lower sequence numbers.
type Fence struct {
	Node       string
	Epoch, Seq uint64
}

// fence returns the sequence number of the deletion in a journal.
func (d *Deletion) fence(node string, epoch uint64) (seq uint64, ok bool) {
	for _, f := range d.Fences {
		if f.Node == node && f.Epoch == epoch {
			return f.Seq, true
		}
	}
	return 0, false
}

// Reaches reports whether a block may hold rows of the tenant, the signal and the times of the deletion,
// whenever they came.
func (d *Deletion) Reaches(b *Block) bool {
	return b.Signal == d.Signal && b.Range.Overlaps(d.Range) && b.HasTenant(d.Tenant)
}

// Precedes reports whether the deletion hides nothing of a block because of when it was made: the block has
// lost the rows already, or all of its rows came later. A journal without a fence is one that had ended, so
// its rows came before, unless the generation of the block says otherwise.
func (d *Deletion) Precedes(b *Block) bool {
	return b.Generation >= d.Generation || !d.follows(b)
}

// follows reports whether a block may have rows that came before the deletion, as far as the journals tell.
func (d *Deletion) follows(b *Block) bool {
	return len(b.Sources) == 0 || slices.ContainsFunc(b.Sources, func(s Source) bool {
		seq, ok := d.fence(s.Node, s.Epoch)
		return !ok || s.SeqLo <= seq
	})
}

// Concerns reports whether a block may hold rows that the deletion hides.
func (d *Deletion) Concerns(b *Block) bool { return d.Reaches(b) && !d.Precedes(b) }

// Deletions is a list of deletions in the order of their generations.
type Deletions []*Deletion

// Applying returns the deletions that apply to a block and a tenant.
func (ds Deletions) Applying(b *Block, tenant string) Deletions {
	var found Deletions
	for _, d := range ds {
		if d.Tenant == tenant && d.Concerns(b) {
			found = append(found, d)
		}
	}
	return found
}

// Due returns the deletions that concern a block and whose rows may be dropped, up to the first that waits.
func (ds Deletions) Due(b *Block, now int64) Deletions {
	var due Deletions
	for _, d := range ds {
		if !d.Concerns(b) {
			continue
		}
		if !d.Due(now) {
			break
		}
		due = append(due, d)
	}
	return due
}

// Cuts returns what the deletions take of a series; usually nothing.
func (ds Deletions) Cuts(l model.Labels) (cuts del.Cuts) {
	for _, d := range ds {
		cuts = cuts.Add(&d.Deletion, l)
	}
	return cuts
}

// shippedGeneration returns the generation of a shipped block: the greatest up to which every deletion was
// made before the first row of the block. It follows from sequence numbers, and so does not depend on when
// the shipper heard of a deletion. all are all known deletions, also the cancelled ones, and greatest is the
// greatest generation that was ever seen.
func shippedGeneration(b *Block, all Deletions, greatest uint64) uint64 {
	for _, d := range all {
		for _, s := range b.Sources {
			if seq, ok := d.fence(s.Node, s.Epoch); ok && s.SeqLo <= seq {
				return d.Generation - 1
			}
		}
	}
	return greatest
}

// deletionID names the record of a generation. The name depends on nothing else, so that exactly one of two
// concurrent writers succeeds.
func deletionID(generation uint64) string { return fmt.Sprintf("delete-%016d", generation) }

// cancelID names the record that cancels the deletion of a generation.
func cancelID(generation uint64) string { return fmt.Sprintf("cancel-%016d", generation) }

// allDeletions returns the deletions of all records, also the cancelled ones. mu must be held.
func (c *Catalog) allDeletions() Deletions {
	var all Deletions
	for _, r := range c.records {
		if r.deletion != nil {
			all = append(all, r.deletion)
		}
	}
	slices.SortFunc(all, func(a, b *Deletion) int { return cmp.Compare(a.Generation, b.Generation) })
	return all
}

// cancelled returns the generations of the deletions that were cancelled. mu must be held.
func (c *Catalog) cancelled() map[uint64]bool {
	found := map[uint64]bool{}
	for _, r := range c.records {
		if r.cancels > 0 {
			found[r.cancels] = true
		}
	}
	return found
}

// cleaned returns for each block the greatest generation up to which no deletion hides any of its rows, as
// compaction has found. mu must be held.
func (c *Catalog) cleaned() map[string]uint64 {
	found := map[string]uint64{}
	for _, r := range c.records {
		for _, x := range r.clean {
			found[x.Block] = max(found[x.Block], x.Generation)
		}
	}
	return found
}

// CleanBlock says that up to a generation no deletion hides any row of a block.
type CleanBlock struct {
	Block      string `json:"block"`
	Generation uint64 `json:"generation"`
}

type deletionEntry struct {
	del.Entry
	Generation uint64       `json:"generation"`
	Fences     []fenceEntry `json:"fences,omitempty"`
}

type fenceEntry struct {
	Node  string `json:"node"`
	Epoch uint64 `json:"epoch"`
	Seq   uint64 `json:"seq"`
}

func deletionEntryOf(d *Deletion) (*deletionEntry, error) {
	entry, err := d.Entry()
	e := &deletionEntry{Entry: entry, Generation: d.Generation}
	for _, f := range d.Fences {
		e.Fences = append(e.Fences, fenceEntry(f))
	}
	return e, err
}

// deletion validates an entry. Its filter is not compiled yet: see [Catalog.parse].
func (e *deletionEntry) deletion() (*Deletion, error) {
	d := &Deletion{Generation: e.Generation}
	for _, f := range e.Fences {
		if f.Seq > maxNumber {
			return nil, fmt.Errorf("invalid sequence number %d of a fence", f.Seq)
		}
		d.Fences = append(d.Fences, Fence(f))
	}
	if d.Generation == 0 || d.Generation > maxNumber {
		return nil, fmt.Errorf("the deletion has generation %d", d.Generation)
	}
	var err error
	d.Deletion, err = e.Entry.Deletion(nil)
	return d, err
}

// checkDeletions validates what a record says about deletions.
func (r *record) checkDeletions(c *commit) error {
	kinds := 0
	for _, is := range []bool{r.Deletion != nil, r.Cancels > 0, len(r.Clean) > 0, len(r.Blocks)+len(r.Replaces)+len(r.Alone) > 0} {
		if is {
			kinds++
		}
	}
	if kinds > 1 {
		return errors.New("the record is of several kinds")
	}
	for _, x := range r.Clean {
		if x.Generation == 0 || x.Generation > maxNumber {
			return fmt.Errorf("block %q: invalid generation %d", x.Block, x.Generation)
		}
	}
	if c.cancels, c.clean = r.Cancels, r.Clean; r.Cancels > 0 && cancelID(r.Cancels) != r.ID {
		return fmt.Errorf("the record cancels the deletion of generation %d", r.Cancels)
	}
	if r.Deletion == nil {
		return nil
	}
	d, err := r.Deletion.deletion()
	if err != nil {
		return err
	}
	if d.Committed = r.Committed; deletionID(d.Generation) != r.ID {
		return fmt.Errorf("the record has the deletion of generation %d", d.Generation)
	}
	c.deletion = d
	return nil
}
