package lines

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

func FuzzLines(f *testing.F) {
	rnd := rand.New(rand.NewPCG(5, 5))
	for shape := range len(lineShapes) + 1 {
		lines, _ := joinLines(randomLines(rnd, 20, shape))
		f.Add(bytes.ReplaceAll(lines, []byte("}{"), []byte("}\n{")), 300)
		all, ends := joinLines(randomLines(rnd, 20, shape))
		var c coder
		if coded, ok := c.append(nil, all, 0, ends, nil); ok {
			f.Add(coded, len(all))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, raw int) {
		var all []byte
		var ends []uint32
		for _, l := range bytes.Split(b, []byte("\n")) {
			all = append(all, l...)
			ends = append(ends, uint32(len(all)))
		}
		var d decoder
		var items Items
		items.Reset()
		c := coder{ints: column.IntCoder{Dense: raw%2 == 0}}
		if coded, ok := c.append(nil, all, 0, ends, &items); ok {
			if got, err := d.decode(coded, len(all), 0, len(all)); err != nil || !bytes.Equal(got, all) {
				t.Fatalf("%q became %q, %v", all, got, err)
			}
			split := &Split{raw: len(all)}
			if err := split.open(coded, len(ends)); err != nil || !bytes.Equal(joined(split), all) {
				t.Fatalf("%q, split, became %q, %v", all, joined(split), err)
			}
			skip := raw & math.MaxInt32 % len(ends)
			end := all[ends[skip]:]
			if got, err := d.decode(coded, len(all), skip+1, len(end)); err != nil || !bytes.Equal(got, end) {
				t.Fatalf("%q without %d lines became %q, %v", all, skip+1, got, err)
			}
		}
		if filter := items.Append(nil, 1000*len(all)); len(filter) > 0 {
			if err := items.CheckIn(filter); err != nil {
				t.Fatalf("%q: %v", b, err)
			}
		}
		if raw = raw & (1<<20 - 1); raw > 0 {
			// The checksum of the columns is made right.
			s := column.Scan{Rest: bytes.Clone(b)}
			if s.Bytes(); len(s.Rest) > file.EnvelopeMin {
				body := s.Rest[:len(s.Rest)-file.ChecksumBytes]
				binary.LittleEndian.PutUint32(s.Rest[len(body):], file.Checksum(body))
				b = append(bytes.Clone(b[:len(b)-len(s.Rest)]), s.Rest...)
			}
			whole, err := d.decode(b, raw, 0, raw)
			if err == nil && len(whole) != raw || err != nil && !errors.Is(err, model.ErrCorrupt) {
				t.Fatalf("%d bytes of %d: %v", len(whole), raw, err)
			}
			n := raw % 7
			if err == nil {
				n = d.cols[0].visits
			}
			split := &Split{raw: raw}
			switch splitErr := split.open(b, n); {
			case splitErr != nil && !errors.Is(splitErr, model.ErrCorrupt):
				t.Fatalf("%d lines of %d bytes: %v", n, raw, splitErr)
			case splitErr == nil && (err != nil || !bytes.Equal(joined(split), whole)):
				t.Fatalf("%d lines of %d bytes, split, are %q, should be %q, %v", n, raw, joined(split), whole, err)
			}
			if got, err := d.decode(b, raw, raw%7, raw/2); err == nil && len(got) != raw/2 || err != nil && !errors.Is(err, model.ErrCorrupt) {
				t.Fatalf("%d bytes of the last %d: %v", len(got), raw/2, err)
			}
		}
	})
}
