package extract

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// keyTable knows the keys that lines have, and which of them followed which. Index 0 stands for the line.
type keyTable struct {
	all   []lineKey // never grows beyond its capacity, so that pointers into it stay valid
	index map[string]int32
	bytes []byte // of texts and names
	probe []byte
	full  bool // it must be forgotten before another key fits
}

// lineKey is a key in its place: on the line, or in the object of another key.
type lineKey struct {
	text []byte // as it stands in lines, with what is around it: "key": or key=
	name []byte // of the label
	// following is the text with what is around it if the value is a string and follows another one: ,"key":"
	following []byte
	// isString says that the last value was a string.
	isString bool
	field    int  // -1: not needed
	below    bool // an object of this name may have fields
	// first is the key that last was the first in the object that is the value, and next the one that last
	// followed; 0: not known.
	first, next int32
}

const (
	maxKeyBytes = 256
	// maxLineKeys and maxLineKeyBytes bound what a runner keeps for lines that call their fields as they like.
	maxLineKeys     = 256
	maxLineKeyBytes = 64 << 10
)

func (t *keyTable) forget() {
	if t.all == nil {
		t.all, t.index = make([]lineKey, 0, maxLineKeys), make(map[string]int32)
	}
	clear(t.index)
	t.all, t.bytes, t.full = append(t.all[:0], lineKey{}), t.bytes[:0], false
}

// add returns the index of a key in the object of another key, or 0 if it cannot be kept. Before and after
// are what stands around it in lines.
func (t *keyTable) add(parent int32, key []byte, before, after string, names []string) int32 {
	t.probe = append(binary.LittleEndian.AppendUint32(t.probe[:0], uint32(parent)), key...)
	if i, ok := t.index[string(t.probe)]; ok {
		return i
	}
	if len(bytes.TrimSpace(key)) == 0 || len(key) > maxKeyBytes {
		return 0
	}
	// A name is not longer than those of the objects around and the key, with a byte before each.
	need := 2*len(key) + len(before) + len(after) + len(t.all[parent].name) + 4
	if len(t.all) == cap(t.all) || len(t.bytes)+need > maxLineKeyBytes {
		t.full = true
		return 0
	}
	k := lineKey{field: -1}
	at := len(t.bytes)
	t.bytes = append(append(append(append(append(t.bytes, ','), before...), key...), after...), '"')
	k.following = t.bytes[at:len(t.bytes):len(t.bytes)]
	k.text = k.following[1 : len(k.following)-1]
	at = len(t.bytes)
	if parent > 0 {
		t.bytes = append(append(t.bytes, t.all[parent].name...), '_')
	}
	t.bytes = AppendName(t.bytes, key, parent == 0)
	k.name = t.bytes[at:len(t.bytes):len(t.bytes)]
	if i, ok := slices.BinarySearch(names, text(k.name)); ok {
		if bytes.HasPrefix(k.name, []byte("__")) {
			return 0 // a label with a meaning of its own
		}
		k.field = i
	}
	k.below = LooksInto(names, k.name)
	t.all = append(t.all, k)
	i := int32(len(t.all) - 1)
	t.index[string(t.probe)] = i
	return i
}
