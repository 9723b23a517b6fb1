package part

import (
	"bytes"
	"encoding/binary"
	"errors"
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
