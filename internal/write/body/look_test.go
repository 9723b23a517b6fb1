package body

import (
	"testing"

	"github.com/golang/snappy"
)

func FuzzLookOf(f *testing.F) {
	for seed, want := range map[string]Look{
		"": Unclear, "{": Unclear, "hello": Unclear, "\x00": Unclear, " {\"": LooksJSON, "{}": LooksJSON, "\x1f\x8b": LooksGzip,
		"\x28\xb5\x2f\xfd": LooksZstd, "\x04\x22\x4d\x18": LooksLZ4, "\x0a\x01x": LooksProtobuf, "\x0a\x02x": Unclear, "\x0a\x00": Unclear,
		string(snappy.Encode(nil, []byte("\x0a\x02xy"))): LooksBlock, "\x01\xf0": Unclear, "\x01\x00\x0a\x01x": Unclear, "\xff\xff\xff\xff\x0f\x00": Unclear,
	} {
		if got := LookOf([]byte(seed)); got != want {
			f.Errorf("%q: %d, want %d", seed, got, want)
		}
		f.Add([]byte(seed))
	}
	f.Fuzz(func(_ *testing.T, b []byte) { LookOf(b) })
}
