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
)

// asidePrefix begins the names of objects that a repair has set aside.
const asidePrefix = "set-aside/"

// ErrOutdated says that a repair does not fit any more. It has no class of model, and nothing has changed.
var ErrOutdated = errors.New("the bucket has changed since it was checked")

// Repair is a change that mends a problem of a bucket. It deletes nothing: it moves what is damaged to
// set-aside/.
type Repair struct {
	// Object is the name of the object that is damaged or missing, and Why says what is wrong with it.
	Object, Why string
	// Action says what the repair does, and Loss what queries lack afterwards; an empty Loss: nothing.
	Action, Loss string
	// Do does the repair. It returns [ErrOutdated] if the problem is a different one by now, or none.
	Do func(ctx context.Context) error
}

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
func (r *Repairer) Propose(ctx context.Context, s *Survey) (all []Repair) {
	if s.seedLost {
		all = append(all, Repair{
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
		all = append(all, Repair{
			Object: copyName(name), Why: "the copy is damaged", Action: "write it again from the record",
			Do: func(ctx context.Context) error { return r.replace(ctx, copyName(name), s.contents[name]) },
		})
	}
	accepted := map[string]bool{}
	for _, l := range s.Lost {
		repair, accepts := r.lostRecord(s, l)
		if accepts {
			accepted[strings.TrimSuffix(strings.TrimPrefix(l.Name, recordPrefix), recordSuffix)] = true
		}
		all = append(all, repair)
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
func (r *Repairer) rebuildSeed(seed model.KeySeed) Repair {
	return Repair{
		Object: seedName, Why: "the object and its copy are missing or damaged",
		Action: fmt.Sprintf("rebuild it from the blocks, which all name the key seed %016x", uint64(seed)),
		Do: func(ctx context.Context) error {
			if now, err := readSeed(ctx, r.Bucket); err == nil {
				return fmt.Errorf("%w: the seed is %016x", ErrOutdated, uint64(now))
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

func (r *Repairer) damagedRecord(d SpareRecord) Repair {
	repair := Repair{Object: d.Name, Why: "the commit record cannot be read"}
	if d.commit != nil {
		repair.Action = "set it aside, and put it back from " + d.From
		repair.Do = func(ctx context.Context) error { return r.replace(ctx, d.Name, d.data) }
		return repair
	}
	repair.Action = "set it aside; then repair once more, which rebuilds the records of its blocks"
	repair.Loss = "what the record deleted, replaced or expired may count again"
	repair.Do = func(ctx context.Context) error { return r.setAside(ctx, d.Name) }
	return repair
}

// lostRecord puts a record back, unless no block of it is left: then the operator accepts the loss.
func (r *Repairer) lostRecord(s *Survey, l SpareRecord) (_ Repair, accepts bool) {
	repair := Repair{Object: l.Name, Why: "the commit record is lost"}
	if l.commit == nil {
		repair.Action = "set its damaged copy aside; then repair once more, which rebuilds the records of its blocks"
		repair.Loss = "what the record deleted, replaced or expired may count again"
		repair.Do = func(ctx context.Context) error { return r.setAside(ctx, copyName(l.Name)) }
		return repair, false
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
		repair.Action = "put it back from " + l.From
		repair.Do = func(ctx context.Context) error { return r.commit(ctx, l.commit.id, l.data) }
		return repair, false
	}
	repair.Why += ", and so are its blocks"
	repair.Action, repair.Loss = "accept the loss", strings.TrimPrefix(rows, "; ")
	if back {
		repair.Action, repair.Loss = "do without it: the blocks that it replaced are there, and count again", ""
	}
	repair.Do = func(ctx context.Context) error {
		if err := putCollected(ctx, r.Bucket, r.Now, []*commit{l.commit}, true); err != nil {
			return err
		}
		if !s.copied[l.Name] {
			return nil
		}
		return r.setAside(ctx, copyName(l.Name))
	}
	return repair, true
}

// stray rebuilds the record of a block, or sets a block aside that cannot be read.
func (r *Repairer) stray(ctx context.Context, o SurveyObject) Repair {
	repair := Repair{Object: o.Name, Why: "the commit record of the block is lost"}
	b, err := r.Describe(ctx, strings.TrimPrefix(o.Name, blockPrefix), o.Bytes)
	if err != nil {
		repair.Why += fmt.Sprintf(", and the block cannot be read: %v", err)
		repair.Action, repair.Loss = "set it aside", "the rows of the block"
		repair.Do = func(ctx context.Context) error { return r.setAside(ctx, o.Name) }
		return repair
	}
	repair.Action = "rebuild the record from the block, which has " + rowsOf(&b)
	repair.Do = func(ctx context.Context) error {
		_, data, err := (&commit{id: b.ID, committed: r.Now, blocks: []Block{b}}).stored()
		if err != nil {
			return err
		}
		return r.commit(ctx, b.ID, data)
	}
	return repair
}

// block accepts the loss of a live block that is missing or damaged.
func (r *Repairer) block(b *SurveyBlock) []Repair {
	repair := Repair{Object: ObjectName(b.ID), Action: "set it aside, and accept the loss of its rows", Loss: rowsOf(&b.Block)}
	switch err := r.Damaged[b.ID]; {
	case b.ObjectBytes < 0:
		repair.Why, repair.Action = "the block is missing", "accept the loss of its rows"
	case b.ObjectBytes != b.Bytes:
		repair.Why = fmt.Sprintf("the block has %d bytes, expected %d", b.ObjectBytes, b.Bytes)
	case err != nil:
		repair.Why = err.Error()
	default:
		return nil
	}
	repair.Do = func(ctx context.Context) error {
		if size, err := sizeOf(ctx, r.Bucket, repair.Object); err != nil {
			return err
		} else if size != b.ObjectBytes {
			return fmt.Errorf("%w: %s has %d bytes", ErrOutdated, repair.Object, size)
		}
		if b.ObjectBytes >= 0 {
			// The server deletes the block itself, like any block that no longer counts.
			if err := r.copyTo(ctx, asideName(repair.Object), repair.Object, b.ObjectBytes); err != nil {
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
	return []Repair{repair}
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
