package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/zeebo/xxh3"
)

// Kind says what a cached value was made of. Values of two kinds never have the same key.
type Kind uint8

const (
	// Page is a decoded page of an object, at Off.
	Page Kind = iota + 1
	// Tail is the end of the decoded page at Off.
	Tail
	// List is what a query has found in the whole object; Digest names the query.
	List
	// Verdicts is what the query that Digest names has found in the page at Off.
	Verdicts
	// Stored is the page at Off as the object has it.
	Stored
	// End is the end of the object, or all of it; its length says how much. It is of a [Secondary].
	End
	// Names is what was made of the names in the whole object; Digest names the tenant. It may be as large as
	// many pages, and is kept among them.
	Names
	// Item is a value of a memcached server, whose key is Object. It changes.
	Item
	// Counts is what another server has counted: Object names the server, and Digest what was counted of which
	// lines. It has nothing to do with a bucket.
	Counts
)

func (k Kind) String() string {
	switch k {
	case Page:
		return "page"
	case Tail:
		return "tail"
	case List:
		return "list"
	case Verdicts:
		return "verdicts"
	case Stored:
		return "stored"
	case End:
		return "end"
	case Names:
		return "names"
	case Item:
		return "item"
	case Counts:
		return "counts"
	}
	return "unknown"
}

// Derived reports whether the value was worked out from pages: it is small, and many pages were read for it.
func (k Kind) Derived() bool { return k == List || k == Verdicts }

// Digest names a query. Different queries have different digests.
type Digest [16]byte

// DigestOf returns the digest of a text: the first half of its SHA-256.
func DigestOf(text []byte) (d Digest) {
	sum := sha256.Sum256(text)
	copy(d[:], sum[:])
	return d
}

// Key names a value. Objects are immutable, and the name of one is never used for another, so a key means the
// same bytes forever. Keys are comparable.
type Key struct {
	Object string
	Kind   Kind
	Off    int64
	Digest Digest
}

// String spells the key out in printable characters, for servers that take keys as text.
func (k Key) String() string { return string(k.Append(nil)) }

// Append appends the text of String.
func (k Key) Append(b []byte) []byte {
	b = append(b, k.Object...)
	b = append(b, ':')
	b = append(b, k.Kind.String()...)
	b = append(b, ':')
	b = strconv.AppendInt(b, k.Off, 10)
	if k.Digest != (Digest{}) {
		b = append(b, ':')
		b = hex.AppendEncode(b, k.Digest[:])
	}
	return b
}

// Hash spreads keys evenly over 64 bits, for tiers that divide them among shards. It is the same in every
// process.
func (k Key) Hash() uint64 {
	h := xxh3.HashString(k.Object) ^ uint64(k.Kind)<<56 ^ uint64(k.Off)
	return xxh3.HashSeed(k.Digest[:], h)
}
