package catalog

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/repair"
	"github.com/shaledb/shale/internal/store/catalog/entry"
)

// asidePrefix begins the names of objects that a repair has set aside.
const asidePrefix = "set-aside/"

// Repairer proposes repairs of a bucket. A server may run meanwhile.
type Repairer struct {
	Bucket bucket.Bucket
	Now    int64 // Unix nanoseconds
	// Describe returns the entry of a block without a record.
	Describe func(ctx context.Context, id string, size int64) (Block, error)
	// Damaged says which live blocks of the right size cannot be read, and why. Check reads one of them once
	// more.
	Damaged map[string]error
	Check   func(ctx context.Context, b *Block) error
	// Seeds are the key seeds that the live blocks name.
	Seeds []model.KeySeed
	// Forgotten says that no server remembers the records of the bucket any more.
	Forgotten bool
}

// Propose returns the repairs for what a survey has found, in the order in which they are to be done. Each
// reads once more what it assumes, right before it changes anything: the operator may take long to agree, and
// servers go on.
//
// withheld counts repairs that are not proposed, as the survey did not know what servers remember. A record
// that is rebuilt next to one that a server remembers would give a block two records.
func (r *Repairer) Propose(ctx context.Context, s *Survey) (all []repair.Step, withheld int) {
	blind := s.memory == nil && !r.Forgotten
	without := func(step repair.Step) {
		if blind {
			withheld++
			return
		}
		all = append(all, step)
	}
	if s.seedLost {
		all = append(all, r.seedFromCopy(s.Seed))
	}
	if !s.SeedKnown && len(r.Seeds) == 1 {
		all = append(all, r.rebuildSeed(r.Seeds[0]))
	}
	for _, d := range s.Damaged {
		if d.commit == nil {
			without(r.unreadableRecord(d.Name, d.Name, "the commit record cannot be read"))
			continue
		}
		all = append(all, repair.Step{
			Object: d.Name, Why: "the commit record cannot be read", Action: "set it aside, and put it back from " + d.From,
			Do: func(ctx context.Context) error {
				if err := r.stillDamaged(ctx, d.Name, d.Name); err != nil {
					return err
				}
				return r.putBack(ctx, d, func() error { return r.replace(ctx, d.Name, d.data) })
			},
		})
	}
	for _, name := range s.badCopies {
		all = append(all, r.badCopy(name, s.contents[name]))
	}
	accepted, given := map[string]bool{}, s.givenUp()
	for _, l := range s.Lost {
		if l.commit == nil {
			without(r.unreadableRecord(l.Name, copyName(l.Name), "the commit record is lost, and its copy is damaged"))
			continue
		}
		step, accepts := r.lostRecord(s, l, given[l.commit.id])
		accepted[l.commit.id] = accepts
		all = append(all, step)
	}
	for _, d := range s.doubled {
		all = append(all, r.doubledBlock(d))
	}
	for _, o := range s.Strays {
		without(r.stray(ctx, s, o))
	}
	for i := range s.Blocks {
		if b := &s.Blocks[i]; b.HiddenBy == "" && !accepted[b.Record] {
			all = append(all, r.block(b)...)
		}
	}
	return all, withheld
}

// seedFromCopy puts the seed back.
func (r *Repairer) seedFromCopy(seed model.KeySeed) repair.Step {
	return repair.Step{
		Object: SeedName, Why: "the object is missing or damaged", Action: "put it back from " + copyName(SeedName),
		Do: func(ctx context.Context) error {
			if err := r.stillNoSeed(ctx, SeedName); err != nil {
				return err
			}
			if now, err := readSeedObject(ctx, r.Bucket, copyName(SeedName)); err != nil || now != seed {
				return fmt.Errorf("%w: %s was %016x and is %016x (%v)", repair.ErrOutdated, copyName(SeedName), uint64(seed), uint64(now), err)
			}
			data, err := storedSeed(seed)
			if err != nil {
				return err
			}
			return r.replace(ctx, SeedName, data)
		},
	}
}

// rebuildSeed writes the seed that all blocks name.
func (r *Repairer) rebuildSeed(seed model.KeySeed) repair.Step {
	return repair.Step{
		Object: SeedName, Why: "the object and its copy are missing or damaged",
		Action: fmt.Sprintf("rebuild it from the blocks, which all name the key seed %016x", uint64(seed)),
		Do: func(ctx context.Context) error {
			for _, name := range []string{SeedName, copyName(SeedName)} {
				if err := r.stillNoSeed(ctx, name); err != nil {
					return err
				}
			}
			data, err := storedSeed(seed)
			if err != nil {
				return err
			}
			if err := r.replace(ctx, SeedName, data); err != nil {
				return err
			}
			return r.replace(ctx, copyName(SeedName), data)
		},
	}
}

// unreadableRecord sets a record or copy aside of which no intact copy is left.
func (r *Repairer) unreadableRecord(name, object, why string) repair.Step {
	return repair.Step{
		Object: object, Why: why, Action: "set it aside; then repair once more, which rebuilds the records of its blocks",
		Loss: "what the record deleted, replaced or expired may count again",
		Do: func(ctx context.Context) error {
			if object != name {
				if err := r.stillLost(ctx, name, nil); err != nil {
					return err
				}
			}
			if err := r.stillDamaged(ctx, name, object); err != nil {
				return err
			}
			return r.setAside(ctx, object)
		},
	}
}

// badCopy writes a copy again from its record.
func (r *Repairer) badCopy(name string, data []byte) repair.Step {
	return repair.Step{
		Object: copyName(name), Why: "the copy is damaged", Action: "write it again from the record",
		Do: func(ctx context.Context) error {
			if err := r.stillDamaged(ctx, name, copyName(name)); err != nil {
				return err
			}
			c, err := parseRecord(name, data)
			if err != nil {
				return err
			}
			if err := r.stillThere(ctx, name, data); err != nil {
				return err
			}
			return r.putBack(ctx, SpareRecord{Name: name, commit: c}, func() error { return r.replace(ctx, copyName(name), data) })
		},
	}
}

// lostRecord puts a record back, unless no block of it is left: then the operator accepts the loss.
func (r *Repairer) lostRecord(s *Survey, l SpareRecord, givenUp bool) (_ repair.Step, accepts bool) {
	step := repair.Step{Object: l.Name, Why: "the commit record is lost"}
	rows := ""
	back := len(l.commit.replaces) > 0 // the blocks that it replaced are there
	for i := range s.Blocks {
		b := &s.Blocks[i]
		switch {
		case b.Record == l.commit.id && b.ObjectBytes < 0:
			rows += "; " + rowsOf(&b.Block)
		case slices.Contains(l.commit.replaces, b.ID) && b.ObjectBytes < 0:
			back = false
		}
	}
	for _, id := range l.commit.replaces {
		back = back && slices.ContainsFunc(s.Blocks, func(b SurveyBlock) bool { return b.ID == id })
	}
	if !givenUp {
		step.Action = "put it back from " + l.From
		step.Do = func(ctx context.Context) error {
			if err := r.stillLost(ctx, l.Name, l.commit); err != nil {
				return err
			}
			return r.putBack(ctx, l, func() error { return r.commit(ctx, l.commit.id, l.data) })
		}
		return step, false
	}
	step.Why += ", and so are its blocks"
	step.Action, step.Loss = "accept the loss", strings.TrimPrefix(rows, "; ")
	if back {
		step.Action, step.Loss = "do without it: the blocks that it replaced are there, and count again", ""
	}
	step.Do = func(ctx context.Context) error {
		if err := r.stillLost(ctx, l.Name, l.commit); err != nil {
			return err
		}
		for i := range l.commit.blocks {
			if err := r.stillSized(ctx, l.commit.blocks[i].ID, -1); err != nil {
				return err
			}
		}
		for i := range s.Blocks {
			if b := &s.Blocks[i]; back && slices.Contains(l.commit.replaces, b.ID) {
				if err := r.stillSized(ctx, b.ID, b.ObjectBytes); err != nil {
					return err
				}
			}
		}
		if err := putCollected(ctx, r.Bucket, r.Now, []*commit{l.commit}, true); err != nil {
			return err
		}
		return r.setAside(ctx, copyName(l.Name))
	}
	return step, true
}

// givenUp returns the lost records of which nothing is left: all their blocks are missing. A missing block
// that another record hides was collected, unless that record is given up itself.
func (s *Survey) givenUp() map[string]bool {
	given := map[string]bool{}
	for more := true; more; {
		more = false
		for _, l := range s.Lost {
			if l.commit == nil || given[l.commit.id] || len(l.commit.blocks) == 0 {
				continue
			}
			missing := 0
			for i := range s.Blocks {
				if b := &s.Blocks[i]; b.Record == l.commit.id && b.ObjectBytes < 0 && (b.HiddenBy == "" || given[b.HiddenBy]) {
					missing++
				}
			}
			if missing == len(l.commit.blocks) {
				given[l.commit.id], more = true, true
			}
		}
	}
	return given
}

// doubledBlock sets the record aside that was rebuilt for a block, as the true one is back.
func (r *Repairer) doubledBlock(d doubledBlock) repair.Step {
	name, other := recordName(d.rebuilt.id), recordName(d.record.id)
	return repair.Step{
		Object: name, Why: fmt.Sprintf("its block has two records: this one was rebuilt, and %s is the true one", other), Action: "set it aside",
		Do: func(ctx context.Context) error {
			for _, record := range []string{name, other} {
				if err := r.stillHolds(ctx, record, d.rebuilt.id); err != nil {
					return err
				}
			}
			if err := putCollected(ctx, r.Bucket, r.Now, []*commit{d.rebuilt}, true); err != nil {
				return err
			}
			if err := r.setAside(ctx, copyName(name)); err != nil {
				return err
			}
			return r.setAside(ctx, name)
		},
	}
}

// stray rebuilds the record of a block, or sets a block aside that cannot be read.
func (r *Repairer) stray(ctx context.Context, s *Survey, o SurveyObject) repair.Step {
	id := strings.TrimPrefix(o.Name, BlockPrefix)
	step := repair.Step{Object: o.Name, Why: "the commit record of the block is lost"}
	b, err := r.Describe(ctx, id, o.Bytes)
	if err != nil {
		step.Why += fmt.Sprintf(", and the block cannot be read: %v", err)
		step.Action, step.Loss = "set it aside", "the rows of the block"
		step.Do = func(ctx context.Context) error {
			if err := r.stillStray(ctx, s, o); err != nil {
				return err
			}
			if _, err := r.Describe(ctx, id, o.Bytes); err == nil {
				return fmt.Errorf("%w: the block can be read", repair.ErrOutdated)
			}
			return r.setAside(ctx, o.Name)
		}
		return step
	}
	step.Action = "rebuild the record from the block, which has " + rowsOf(&b)
	b.OrderLo = s.orderAt(b.Created)
	b.OrderHi = b.OrderLo
	step.Do = func(ctx context.Context) error {
		if err := r.stillStray(ctx, s, o); err != nil {
			return err
		}
		_, data, err := (&commit{id: b.ID, committed: r.Now, blocks: []Block{b}}).stored()
		if err != nil {
			return err
		}
		return r.commit(ctx, b.ID, data)
	}
	return step
}

// orderAt estimates the order number of a block from the time when it was written: that of the newest block
// that is not younger.
func (s *Survey) orderAt(created int64) (order uint64) {
	for i := range s.Blocks {
		if b := &s.Blocks[i]; b.Created <= created {
			order = max(order, b.OrderHi)
		}
	}
	return order
}

// block accepts the loss of a live block that is missing or damaged.
func (r *Repairer) block(b *SurveyBlock) []repair.Step {
	step := repair.Step{Object: ObjectName(b.ID), Action: "set it aside, and accept the loss of its rows", Loss: rowsOf(&b.Block)}
	switch err := r.Damaged[b.ID]; {
	case b.ObjectBytes < 0:
		step.Why, step.Action = "the block is missing", "accept the loss of its rows"
	case b.ObjectBytes != b.Bytes:
		step.Why = fmt.Sprintf("the block has %d bytes, expected %d", b.ObjectBytes, b.Bytes)
	case err != nil:
		step.Why = err.Error()
	default:
		return nil
	}
	step.Do = func(ctx context.Context) error {
		if err := r.stillSized(ctx, b.ID, b.ObjectBytes); err != nil {
			return err
		}
		if b.ObjectBytes == b.Bytes && r.Check(ctx, &b.Block) == nil {
			return fmt.Errorf("%w: %s is in order", repair.ErrOutdated, step.Object)
		}
		if b.ObjectBytes >= 0 {
			// The server deletes the block itself, like any block that no longer counts.
			if err := r.copyTo(ctx, asideName(step.Object), step.Object, b.ObjectBytes); err != nil {
				return err
			}
		}
		c := &commit{id: entry.ListID("accepted", []string{b.ID}), committed: r.Now, replaces: []string{b.ID}}
		_, data, err := c.stored()
		if err != nil {
			return err
		}
		return r.commit(ctx, c.id, data)
	}
	return []repair.Step{step}
}

// rowsOf describes the rows of a block.
func rowsOf(b *Block) string {
	rows := fmt.Sprintf("%d %s", b.Samples, english.PluralWord(int(b.Samples), "sample", ""))
	if b.Signal == model.Logs {
		rows = fmt.Sprintf("%d %s", b.Lines, english.PluralWord(int(b.Lines), "line", ""))
	}
	names := b.TenantNames()
	return fmt.Sprintf("%s of %d series of %s %s from %s to %s", rows, b.Series, english.PluralWord(len(names), "tenant", ""), brief(names), instant(b.Range.Min), instant(b.Range.Max))
}

// commit writes a record and its copy.
func (r *Repairer) commit(ctx context.Context, id string, data []byte) error {
	for _, name := range []string{recordName(id), copyName(recordName(id))} {
		if err := r.Bucket.Put(ctx, name, bytes.NewReader(data), int64(len(data))); err != nil {
			return err
		}
	}
	return nil
}

// replace puts data in the place of a damaged object, which it sets aside.
func (r *Repairer) replace(ctx context.Context, name string, data []byte) error {
	if old, err := r.Bucket.Get(ctx, name); err == nil {
		if err := r.Bucket.Put(ctx, asideName(name), bytes.NewReader(old), int64(len(old))); err != nil {
			return err
		}
	}
	return r.Bucket.Put(ctx, name, bytes.NewReader(data), int64(len(data)))
}

// setAside moves an object.
func (r *Repairer) setAside(ctx context.Context, name string) error {
	size, err := sizeOf(ctx, r.Bucket, name)
	if err != nil || size < 0 {
		return err
	}
	if err := r.copyTo(ctx, asideName(name), name, size); err != nil {
		return err
	}
	return r.Bucket.Delete(ctx, name)
}

// asideName returns a free name: an object may be set aside more than once.
func asideName(name string) string { return asidePrefix + name + "." + nonce() }

func (r *Repairer) copyTo(ctx context.Context, to, from string, size int64) error {
	return r.Bucket.Put(ctx, to, &objectReader{ctx: ctx, b: r.Bucket, name: from, left: size}, size)
}

// objectReader reads an object piece by piece.
type objectReader struct {
	ctx       context.Context
	b         bucket.Bucket
	name      string
	off, left int64
}

const pieceBytes = 4 << 20

// Read reads at most one piece.
func (o *objectReader) Read(p []byte) (int, error) {
	n := min(int64(len(p)), o.left, pieceBytes)
	if o.left == 0 {
		return 0, io.EOF
	}
	data, err := o.b.GetRange(o.ctx, o.name, o.off, n)
	if err != nil {
		return 0, err
	}
	o.off, o.left = o.off+n, o.left-n
	return copy(p, data), nil
}
