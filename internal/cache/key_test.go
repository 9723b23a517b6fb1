package cache

import (
	"strings"
	"testing"
)

// TestKeysDiffer: keys that differ in one field have different texts and hashes.
func TestKeysDiffer(t *testing.T) {
	keys := []Key{
		{Object: "o", Kind: Page, Off: 7}, {Object: "p", Kind: Page, Off: 7}, {Object: "o", Kind: Tail, Off: 7}, {Object: "o", Kind: Page, Off: 8},
		{Object: "o", Kind: List, Digest: DigestOf([]byte("a"))}, {Object: "o", Kind: List, Digest: DigestOf([]byte("b"))},
		{Object: "o", Kind: Verdicts, Off: 7, Digest: DigestOf([]byte("a"))},
	}
	texts, hashes := map[string]Key{}, map[uint64]Key{}
	for _, k := range keys {
		if other, ok := texts[k.String()]; ok {
			t.Errorf("%+v and %+v are both %s", k, other, k)
		}
		if other, ok := hashes[k.Hash()]; ok {
			t.Errorf("%+v and %+v have the same hash", k, other)
		}
		texts[k.String()], hashes[k.Hash()] = k, k
		if strings.ContainsFunc(k.String(), func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("%q is not printable", k.String())
		}
	}
}
