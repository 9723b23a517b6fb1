package part

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

func FuzzOpenCheck(f *testing.F) {
	f.Add(smallPart(f, Fast))
	f.Add(smallPart(f, Dense))
	_, empty := writePart(f, nil, testOptions(false, Fast))
	f.Add(empty)
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := openAndCheck(reseal(b)); err != nil && !errors.Is(err, model.ErrCorrupt) && !errors.Is(err, model.ErrInvalid) {
			t.Fatal(err)
		}
	})
}

// reseal makes the checksums of tail and footer right, so that a changed footer is looked at.
func reseal(b []byte) []byte {
	n := len(b)
	if n < headerBytes+tailBytes+envelopeMin {
		return b
	}
	b = bytes.Clone(b)
	tail := b[n-tailBytes:]
	binary.LittleEndian.PutUint32(tail[8:], checksum(tail[:8]))
	if size := int(binary.LittleEndian.Uint32(tail)); size >= envelopeMin && size <= n-tailBytes-headerBytes {
		page := b[n-tailBytes-size : n-tailBytes]
		binary.LittleEndian.PutUint32(page[size-crcBytes:], checksum(page[:size-crcBytes]))
	}
	return b
}

func FuzzDecodePage(f *testing.F) {
	for _, codec := range []byte{codecNone, codecS2, codecZstd} {
		for _, payload := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("shale"), 1000)} {
			stored, err := sealPage(nil, payload, codec)
			must(f, err)
			f.Add(stored)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		// The checksum is made right, so that what lies behind it is reached.
		if len(b) >= crcBytes {
			b = binary.LittleEndian.AppendUint32(b[:len(b)-crcBytes:len(b)-crcBytes], checksum(b[:len(b)-crcBytes]))
		}
		payload, err := DecodePage(b)
		if err != nil {
			if !errors.Is(err, model.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if len(payload) > maxPageBytes {
			t.Fatalf("%d bytes", len(payload))
		}
	})
}

// FuzzPayloads gives bytes to every decoder of a page's payload.
func FuzzPayloads(f *testing.F) {
	for _, level := range []Compression{Fast, Dense} {
		whole := smallPart(f, level)
		r, err := Open(context.Background(), bytes.NewReader(whole), int64(len(whole)))
		must(f, err)
		for s := range sections {
			for i := range r.footer.index[s] {
				payload, err := r.pages.Page(context.Background(), r.footer.index[s][i].addr)
				must(f, err)
				f.Add(payload)
				entries, err := r.indexPage(context.Background(), nil, s, i)
				must(f, err)
				for k := range entries {
					payload, err := r.pages.Page(context.Background(), entries[k].addr)
					must(f, err)
					f.Add(payload)
				}
			}
		}
		f.Add(r.footer.append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = readFooter(b, 1<<20)
		for s := range sections {
			_, _ = readIndexPage(nil, b, s, 1<<20)
		}
		var keys keyDir
		if keys.open(b) == nil {
			keys.seek(model.Key{Hi: 1 << 60})
		}
		var labels labelDir
		if labels.open(b) == nil {
			for i := labels.count - 1; i >= 0; i -= 1 + labels.count/10 {
				if labels.seek(i) != nil {
					break
				}
			}
		}
		var lists postingDir
		if lists.open(b) == nil {
			for ok, err := lists.next(); ok && err == nil; ok, err = lists.next() {
				_ = lists.runs(1000, func(from, to uint32) {
					if from >= to || to > 1000 {
						t.Fatalf("run [%d, %d)", from, to)
					}
				})
			}
		}
		var masks maskDir
		_ = masks.open(b)
		for _, dir := range []rowDir{&sampleDir{}, &exemplarDir{}} {
			if dir.open(b) != nil {
				continue
			}
			var rows model.Rows
			_, ranks, _ := dir.span()
			for i := range ranks {
				_ = dir.appendRows(i, anyTime, &rows)
				rows.Reset()
			}
			_, _, _ = dir.extent()
		}
	})
}

func FuzzInts(f *testing.F) {
	f.Add([]byte{}, false)
	f.Add(binary.LittleEndian.AppendUint64(nil, 1<<63), true)
	f.Add(bytes.Repeat([]byte{99, 0, 0, 0, 0, 0, 0, 0}, 9), true)
	f.Fuzz(func(t *testing.T, b []byte, dense bool) {
		var xs []int64
		for i := 0; i+8 <= len(b); i += 8 {
			xs = append(xs, int64(binary.LittleEndian.Uint64(b[i:])))
		}
		c := intCoder{dense: dense}
		enc := c.append(nil, xs)
		var d intDecoder
		s := scan{b: enc}
		got := d.append(nil, &s, len(xs))
		if err := s.end("ints"); err != nil || !slices.Equal(got, xs) {
			t.Fatalf("%v: %v, %v", xs, got, err)
		}
		// And as a column of anything.
		s = scan{b: b}
		if n := len(d.append(nil, &s, 100)); !s.bad && n != 100 {
			t.Fatalf("%d numbers of 100", n)
		}
	})
}

func FuzzValues(f *testing.F) {
	f.Add([]byte{}, true)
	var seed []byte
	for i := range 40 {
		seed = binary.LittleEndian.AppendUint64(seed, math.Float64bits(float64(i)/10))
	}
	f.Add(seed, false)
	for _, v := range specials {
		seed = binary.LittleEndian.AppendUint64(seed, v)
	}
	f.Add(seed, true)
	for i := range 40 {
		seed = binary.LittleEndian.AppendUint64(seed, math.Float64bits(math.Sqrt(float64(i))))
	}
	f.Add(seed[320:], true)
	f.Fuzz(func(t *testing.T, b []byte, dense bool) {
		var values []uint64
		for i := 0; i+8 <= len(b); i += 8 {
			values = append(values, binary.LittleEndian.Uint64(b[i:]))
		}
		var d valueDecoder
		if len(values) > 0 {
			c := valueCoder{ints: intCoder{dense: dense}}
			enc := c.append(nil, values)
			if len(enc) > 1+8*len(values) {
				t.Fatalf("%d bytes for %d values", len(enc), len(values))
			}
			got, err := d.append(nil, enc, len(values))
			if err != nil || !slices.Equal(got, values) {
				t.Fatalf("%x: %x, %v", values, got, err)
			}
		}
		if got, err := d.append(nil, b, 50); err == nil && len(got) != 50 {
			t.Fatalf("%d values of 50", len(got))
		}
	})
}
