package entry

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// ListID makes the id of a record from lists of ids, each in any order.
func ListID(kind string, lists ...[]string) string {
	h := sha256.New()
	for i, ids := range lists {
		if i > 0 {
			h.Write([]byte{0})
		}
		for _, id := range slices.Sorted(slices.Values(ids)) {
			h.Write([]byte(id))
			h.Write([]byte{0})
		}
	}
	return kind + "-" + hex.EncodeToString(h.Sum(nil)[:16])
}
