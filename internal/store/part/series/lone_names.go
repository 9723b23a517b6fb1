package series

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// LoneNames walks, ascending, the names of the tenant's series that have no other label. It is a
// [model.NameWalk].
type LoneNames struct {
	ctx    context.Context
	reader *file.Reader
	tenant string
	walk   *postingWalk // nil: the part does not have the tenant
	// keys finds the series of a name by their key, which follows from the name alone; nil: no series of the
	// tenant has another label.
	keys *KeyCursor
	key  model.KeyBuilder
	set  []byte // the labels of the name
	last []byte
	// placed says that the walk is at a name.
	placed bool
	err    error
}

var nameLabel = []byte(model.NameLabel)

// NewLoneNames returns a walk before the first name.
func NewLoneNames(ctx context.Context, r *file.Reader, tenant string) *LoneNames {
	n := &LoneNames{ctx: ctx, reader: r, tenant: tenant, key: model.KeyBuilder{Seed: r.Meta().Seed, Signal: model.Metrics}}
	t := r.Meta().Tenant(tenant)
	switch {
	case t == nil:
		return n
	case !r.Meta().Labels:
		n.err = column.Invalid("names asked of a part without labels")
		return n
	}
	n.walk = newPostingWalk(ctx, r, t)
	// Another label comes before the name, or after it.
	others := n.walk.seek(nil, nil) && string(n.walk.dir.name) != model.NameLabel || n.walk.seek(append(nameLabel, 0), nil)
	if others {
		n.keys = NewKeyCursor(ctx, r, tenant)
	}
	n.err = n.walk.err
	return n
}

// Seek moves to the first name that is not less than from.
func (n *LoneNames) Seek(from []byte) bool {
	if n.err != nil || n.walk == nil {
		return false
	}
	n.last = n.last[:0]
	if n.placed && string(n.walk.dir.value) < string(from) {
		return n.settle(n.walk.seekOn(nameLabel, from))
	}
	return n.settle(n.walk.seek(nameLabel, from))
}

// Next moves to the next name.
func (n *LoneNames) Next() bool {
	if n.err != nil || n.walk == nil {
		return false
	}
	n.last = append(n.last[:0], n.walk.dir.value...)
	return n.settle(n.walk.next())
}

// settle moves on to an entry that is the name of a series without other labels. Long lists have several
// entries.
func (n *LoneNames) settle(ok bool) bool {
	for ; ok && string(n.walk.dir.name) == model.NameLabel; ok = n.walk.next() {
		if string(n.walk.dir.value) == string(n.last) && len(n.last) > 0 {
			continue
		}
		if n.keys == nil || n.lone(n.walk.dir.value) {
			n.placed = n.err == nil
			return n.placed
		}
		if n.err != nil {
			return false
		}
	}
	n.err, n.placed = n.walk.err, false
	return false
}

// lone reports whether a series has a name and nothing else.
func (n *LoneNames) lone(name []byte) bool {
	n.set = model.AppendName(n.set[:0], name)
	n.key.Reset()
	n.key.Label(nameLabel, name)
	k := n.key.Key(n.set)
	found := n.keys.SeekGE(k) && n.keys.Key() == k
	n.err = n.keys.Err()
	return found
}

// Name returns the current name. It is valid until the walk moves.
func (n *LoneNames) Name() []byte { return n.walk.dir.value }

// Err returns the error that ended the walk, if any.
func (n *LoneNames) Err() error { return n.err }
