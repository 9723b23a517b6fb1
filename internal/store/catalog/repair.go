package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/repair"
)

// asidePrefix begins the names of objects that a repair has set aside.
const asidePrefix = "set-aside/"

// Repairer proposes repairs of a bucket. A server may run meanwhile.
type Repairer struct {
	Bucket bucket.Bucket
	Now    int64 // Unix nanoseconds
	// Describe returns the entry of a block without a record.
	Describe func(ctx context.Context, id string, size int64) (Block, error)
	// Damaged says which live blocks of the right size cannot be read, and why.
	Damaged map[string]error
	// Seeds are the key seeds that the live blocks name.
	Seeds []model.KeySeed
}

// Propose returns the repairs for what a survey has found, in the order in which they are to be done.
func (r *Repairer) Propose(ctx context.Context, s *Survey) (all []repair.Step) {
	if s.seedLost {
		all = append(all, repair.Step{
			Object: seedName, Why: "the object is missing or damaged", Action: "put it back from " + copyName(seedName),
			Do: func(ctx context.Context) error {
				data, err := r.Bucket.Get(ctx, copyName(seedName))
				if err == nil {
					err = r.replace(ctx, seedName, data)
				}
				return err
			},
		})
	}
	if !s.SeedKnown && len(r.Seeds) == 1 {
		all = append(all, r.rebuildSeed(r.Seeds[0]))
	}
	for _, d := range s.Damaged {
		all = append(all, r.damagedRecord(d))
	}
	for _, name := range s.badCopies {
		all = append(all, repair.Step{
			Object: copyName(name), Why: "the copy is damaged", Action: "write it again from the record",
			Do: func(ctx context.Context) error { return r.replace(ctx, copyName(name), s.contents[name]) },
		})
	}
	accepted := map[string]bool{}
	for _, l := range s.Lost {
		step, accepts := r.lostRecord(s, l)
		if accepts {
			accepted[strings.TrimSuffix(strings.TrimPrefix(l.Name, recordPrefix), recordSuffix)] = true
		}
		all = append(all, step)
	}
	for _, o := range s.Strays {
		all = append(all, r.stray(ctx, o))
	}
	for i := range s.Blocks {
		if b := &s.Blocks[i]; b.HiddenBy == "" && !accepted[b.Record] {
			all = append(all, r.block(b)...)
		}
	}
	return all
}

// rebuildSeed writes the seed that all blocks name.
func (r *Repairer) rebuildSeed(seed model.KeySeed) repair.Step {
	return repair.Step{
		Object: seedName, Why: "the object and its copy are missing or damaged",
		Action: fmt.Sprintf("rebuild it from the blocks, which all name the key seed %016x", uint64(seed)),
		Do: func(ctx context.Context) error {
			if now, err := readSeed(ctx, r.Bucket); err == nil {
				return fmt.Errorf("%w: the seed is %016x", repair.ErrOutdated, uint64(now))
			} else if !errors.Is(err, bucket.ErrNotFound) && !errors.Is(err, model.ErrCorrupt) {
				return err
			}
			data, err := storedSeed(seed)
			if err != nil {
				return err
			}
			if err := r.replace(ctx, seedName, data); err != nil {
				return err
			}
			return r.replace(ctx, copyName(seedName), data)
		},
	}
}

func (r *Repairer) damagedRecord(d SpareRecord) repair.Step {
	step := repair.Step{Object: d.Name, Why: "the commit record cannot be read"}
	if d.commit != nil {
		step.Action = "set it aside, and put it back from " + d.From
		step.Do = func(ctx context.Context) error { return r.replace(ctx, d.Name, d.data) }
		return step
	}
	step.Action = "set it aside; then repair once more, which rebuilds the records of its blocks"
	step.Loss = "what the record deleted, replaced or expired may count again"
	step.Do = func(ctx context.Context) error { return r.setAside(ctx, d.Name) }
	return step
}

// lostRecord puts a record back, unless no block of it is left: then the operator accepts the loss.
func (r *Repairer) lostRecord(s *Survey, l SpareRecord) (_ repair.Step, accepts bool) {
	step := repair.Step{Object: l.Name, Why: "the commit record is lost"}
	if l.commit == nil {
		step.Action = "set its damaged copy aside; then repair once more, which rebuilds the records of its blocks"
		step.Loss = "what the record deleted, replaced or expired may count again"
		step.Do = func(ctx context.Context) error { return r.setAside(ctx, copyName(l.Name)) }
		return step, false
	}
	missing := 0
	rows := ""
	back := len(l.commit.replaces) > 0 // the blocks that it replaced are there
	for i := range s.Blocks {
		b := &s.Blocks[i]
		switch {
		case b.Record == l.commit.id && b.ObjectBytes < 0:
			missing++
			rows += "; " + rowsOf(&b.Block)
		case slices.Contains(l.commit.replaces, b.ID) && b.ObjectBytes < 0:
			back = false
		}
	}
	for _, id := range l.commit.replaces {
		back = back && slices.ContainsFunc(s.Blocks, func(b SurveyBlock) bool { return b.ID == id })
	}
	if missing == 0 || missing < len(l.commit.blocks) {
		step.Action = "put it back from " + l.From
		step.Do = func(ctx context.Context) error { return r.commit(ctx, l.commit.id, l.data) }
		return step, false
	}
	step.Why += ", and so are its blocks"
	step.Action, step.Loss = "accept the loss", strings.TrimPrefix(rows, "; ")
	if back {
		step.Action, step.Loss = "do without it: the blocks that it replaced are there, and count again", ""
	}
	step.Do = func(ctx context.Context) error {
		if err := putCollected(ctx, r.Bucket, r.Now, []*commit{l.commit}, true); err != nil {
			return err
		}
		if !s.copied[l.Name] {
			return nil
		}
		return r.setAside(ctx, copyName(l.Name))
	}
	return step, true
}

// stray rebuilds the record of a block, or sets a block aside that cannot be read.
func (r *Repairer) stray(ctx context.Context, o SurveyObject) repair.Step {
	step := repair.Step{Object: o.Name, Why: "the commit record of the block is lost"}
	b, err := r.Describe(ctx, strings.TrimPrefix(o.Name, blockPrefix), o.Bytes)
	if err != nil {
		step.Why += fmt.Sprintf(", and the block cannot be read: %v", err)
		step.Action, step.Loss = "set it aside", "the rows of the block"
		step.Do = func(ctx context.Context) error { return r.setAside(ctx, o.Name) }
		return step
	}
	step.Action = "rebuild the record from the block, which has " + rowsOf(&b)
	step.Do = func(ctx context.Context) error {
		_, data, err := (&commit{id: b.ID, committed: r.Now, blocks: []Block{b}}).stored()
		if err != nil {
			return err
		}
		return r.commit(ctx, b.ID, data)
	}
	return step
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
		if size, err := sizeOf(ctx, r.Bucket, step.Object); err != nil {
			return err
		} else if size != b.ObjectBytes {
			return fmt.Errorf("%w: %s has %d bytes", repair.ErrOutdated, step.Object, size)
		}
		if b.ObjectBytes >= 0 {
			// The server deletes the block itself, like any block that no longer counts.
			if err := r.copyTo(ctx, asideName(step.Object), step.Object, b.ObjectBytes); err != nil {
				return err
			}
		}
		c := &commit{id: listID("accepted", []string{b.ID}), committed: r.Now, replaces: []string{b.ID}}
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
	rows := fmt.Sprintf("%d samples", b.Samples)
	if b.Signal == model.Logs {
		rows = fmt.Sprintf("%d lines", b.Lines)
	}
	return fmt.Sprintf("%s of %d series of tenants %s from %s to %s", rows, b.Series, brief(b.tenantNames()), instant(b.Range.Min), instant(b.Range.Max))
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
