package model

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"

	"github.com/zeebo/xxh3"
)

// Key identifies a series: 128 bits made from its labels alone, in four fields from the top,
//
//	[20 bits: name][12: group][16: target][80: all labels]
//
// so that keys sort by metric, then by job, then by target. docs/format.md gives the exact construction;
// golden tests keep it.
type Key struct {
	Hi, Lo uint64
}

// KeyBytes is the size of a stored key, which is big-endian.
const KeyBytes = 16

// Compare orders keys like their stored bytes.
func (k Key) Compare(o Key) int {
	switch {
	case k.Hi < o.Hi:
		return -1
	case k.Hi > o.Hi:
		return 1
	case k.Lo < o.Lo:
		return -1
	case k.Lo > o.Lo:
		return 1
	}
	return 0
}

// Less reports whether k sorts before o.
func (k Key) Less(o Key) bool { return k.Hi < o.Hi || k.Hi == o.Hi && k.Lo < o.Lo }

// Append appends the stored form.
func (k Key) Append(dst []byte) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, k.Hi), k.Lo)
}

// KeyFrom reads the stored form from the first 16 bytes of b.
func KeyFrom(b []byte) Key {
	return Key{Hi: binary.BigEndian.Uint64(b), Lo: binary.BigEndian.Uint64(b[8:])}
}

// String returns the key as 32 hexadecimal digits.
func (k Key) String() string { return hex.EncodeToString(k.Append(nil)) }

// KeySeed makes the keys of an installation unpredictable, so that label sets cannot be crafted to collide.
// It is drawn once, written into the root of the bucket and repeated in every file.
type KeySeed uint64

// The label names whose values fill the fields of a key.
const (
	NameLabel    = "__name__"
	groupLabel   = "job"
	targetLabel  = "instance"
	serviceLabel = "service_name"
	// The group of logs is the first of these two that is present.
	namespaceLabel = "namespace"
	clusterLabel   = "cluster"
)

// KeyBuilder computes keys: for each series Reset, then Label for each of its labels in any order, then Key.
// With a Seed and a Signal the zero value is ready; one builder serves any number of series, one after the
// other.
//
// The hash of all labels is that of their canonical bytes. Most senders put exactly these on the wire, so
// they are hashed in place. An order-free sum of one hash for each pair was tried: it is slower for remote
// write 1.0, and faster only for 2.0 with few distinct labels.
type KeyBuilder struct {
	Seed   KeySeed
	Signal Signal

	labels              int
	name, group, target []byte
	// ranked is the rank of the label that filled group, for logs: namespace takes precedence over cluster.
	ranked uint8

	scratch []byte
	// The last parent path and its field: neighbours in a Graphite stream share their parent.
	parent     []byte
	parentHash uint64
}

// Reset starts the next series.
func (b *KeyBuilder) Reset() {
	b.labels, b.name, b.group, b.target, b.ranked = 0, nil, nil, nil, 0
}

// Label adds a label. The bytes must stay unchanged until Key.
func (b *KeyBuilder) Label(name, value []byte) {
	b.labels++
	if b.Signal == Logs {
		b.logLabel(name, value)
		return
	}
	switch len(name) {
	case len(groupLabel):
		if string(name) == groupLabel {
			b.group = value
		}
	case len(NameLabel):
		if string(name) == NameLabel {
			b.name = value
		} else if string(name) == targetLabel {
			b.target = value
		}
	}
}

func (b *KeyBuilder) logLabel(name, value []byte) {
	switch string(name) {
	case serviceLabel:
		b.name = value
	case namespaceLabel:
		b.group, b.ranked = value, 2
	case clusterLabel:
		if b.ranked < 2 {
			b.group, b.ranked = value, 1
		}
	case targetLabel:
		b.target = value
	}
}

// Key returns the key of the labels added since Reset. all are their bytes as sent. If these are not
// canonical (see [Labels]), the result is the key of no series. It is found nowhere, so the write path takes
// the series for new, builds its labels, and computes the right key.
func (b *KeyBuilder) Key(all []byte) Key {
	h := xxh3.Hash128Seed(all, uint64(b.Seed))
	if b.labels == 1 && b.Signal == Metrics {
		if i := bytes.LastIndexByte(b.name, '.'); i >= 0 {
			return Key{Hi: b.path(b.name[:i]) | h.Hi&0xffff, Lo: h.Lo}
		}
	}
	return Key{Hi: b.field(b.name)>>44<<44 | b.field(b.group)>>52<<32 | b.field(b.target)>>48<<16 | h.Hi&0xffff, Lo: h.Lo}
}

// NameKey returns the key of a metric whose only label is its name, like those of Graphite.
func (b *KeyBuilder) NameKey(name []byte) Key {
	b.Reset()
	b.labels, b.name = 1, name
	b.scratch = appendLabel(b.scratch[:0], nameLabelBytes, name)
	return b.Key(b.scratch)
}

var nameLabelBytes = []byte(NameLabel)

// field hashes the value of one field; the field of an absent label is 0.
func (b *KeyBuilder) field(value []byte) uint64 {
	if len(value) == 0 {
		return 0
	}
	return xxh3.HashSeed(value, uint64(b.Seed))
}

// path returns the 48 bits of a dotted name: 20 of the first two nodes of its parent path, and 28 of the
// whole parent, so that the names of a.* and of a.b.c.* are neighbours.
func (b *KeyBuilder) path(parent []byte) uint64 {
	if b.parentHash != 0 && bytes.Equal(parent, b.parent) {
		return b.parentHash
	}
	top := parent
	if i := bytes.IndexByte(top, '.'); i >= 0 {
		if j := bytes.IndexByte(top[i+1:], '.'); j >= 0 {
			top = top[:i+1+j]
		}
	}
	h := xxh3.HashSeed(top, uint64(b.Seed))>>44<<44 | xxh3.HashSeed(parent, uint64(b.Seed))>>36<<16
	b.parent, b.parentHash = append(b.parent[:0], parent...), h
	return h
}
