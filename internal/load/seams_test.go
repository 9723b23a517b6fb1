package load

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"pgregory.net/rapid"
)

// TestSeams: whatever is said of its seams, a part comes back as it was.
func TestSeams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var raw []byte
		var seams []seam
		texts := [...]string{"", "a", "level=info", strings.Repeat("xy", 40), strings.Repeat("component ", 7000), "\x00\xff 12"}
		for range rapid.IntRange(0, 60).Draw(t, "phrases") {
			number := uint8(rapid.IntRange(0, int(seamTexts)-1).Draw(t, "number"))
			if rapid.IntRange(0, 3).Draw(t, "seam") > 0 {
				seams = append(seams, seam{uint32(len(raw)), number})
			}
			raw = append(raw, rapid.SampledFrom(texts[:]).Draw(t, "text")...)
			raw = append(raw, rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "bytes")...)
		}
		seams = slices.DeleteFunc(seams, func(s seam) bool { return int(s.at) == len(raw) })
		p := &snappyPacker{}
		p.begin()
		p.addSeams(raw, seams)
		p.addSeams(raw, nil)
		packed, size := p.end()
		if got, err := s2.Decode(nil, packed); err != nil || size != 2*len(raw) || !bytes.Equal(got, slices.Concat(raw, raw)) {
			t.Fatalf("%d bytes of %d, %v", len(got), 2*len(raw), err)
		}
	})
}

// TestSeamsAreFound: the seams of lines are most of what a compressor finds that looks for itself.
func TestSeamsAreFound(t *testing.T) {
	for name, mix := range map[string]Mix{"json": {formatJSON: 1}, "logfmt": {formatLogfmt: 1}, "access": {formatAccess: 1}, "text": {formatText: 1}} {
		l := Logs{Seed: 1, Streams: 40, Pods: 5, PerNode: 20, Lines: 4400, Mix: mix, Windows: 2}
		b := newLogBody(l.writer(Timeline{Start: 1_700_000_000e9, Step: int64(time.Minute)}), LogProtobuf)
		packed, size := b.fill(0, 0)
		raw, err := s2.Decode(nil, packed)
		if err != nil || len(raw) != size {
			t.Fatalf("%s: %d bytes of %d, %v", name, len(raw), size, err)
		}
		if searched := len(s2.EncodeSnappy(nil, raw)); len(packed) > searched*4/3 {
			t.Errorf("%s: %d bytes, searched %d of %d", name, len(packed), searched, size)
		} else {
			t.Logf("%s: %d bytes, searched %d of %d", name, len(packed), searched, size)
		}
	}
}
