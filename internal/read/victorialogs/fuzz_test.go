package victorialogs

import (
	"bytes"
	"testing"
)

// FuzzStreamOfAnything: whatever a server sends as a stream, it is read as fields or refused.
func FuzzStreamOfAnything(f *testing.F) {
	for _, s := range []string{"", "{}", `{a="b"}`, `{a="b",}`, `{a="b"`, `{="b"}`, `{a='b'}`, `{a="b"c="d"}`, `{a="\x"}`, "{a=\"b\nc\"}", `{a="b","c"="d"}`, `}{`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, spelling []byte) {
		before := bytes.Clone(spelling)
		all, err := fieldsOf(spelling)
		if err == nil && len(spelling) > 2 && len(all) == 0 {
			t.Errorf("%q has no field and no error", spelling)
		}
		if !bytes.Equal(before, spelling) {
			t.Errorf("%q was changed", before)
		}
	})
}
