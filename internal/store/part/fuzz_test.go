package part

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
	"github.com/shaledb/shale/internal/store/part/parttest"
)

func FuzzOpenCheck(f *testing.F) {
	f.Add(smallPart(f, Fast))
	f.Add(smallPart(f, Dense))
	_, treed := treedPart(f)
	f.Add(treed)
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
	if n < file.HeaderBytes+file.TailBytes+file.EnvelopeMin {
		return b
	}
	b = bytes.Clone(b)
	tail := b[n-file.TailBytes:]
	binary.LittleEndian.PutUint32(tail[8:], file.Checksum(tail[:8]))
	if size := int(binary.LittleEndian.Uint32(tail)); size >= file.EnvelopeMin && size <= n-file.TailBytes-file.HeaderBytes {
		page := b[n-file.TailBytes-size : n-file.TailBytes]
		binary.LittleEndian.PutUint32(page[size-file.ChecksumBytes:], file.Checksum(page[:size-file.ChecksumBytes]))
	}
	return b
}

func FuzzDecodePage(f *testing.F) {
	for _, codec := range []byte{file.CodecNone, file.CodecS2, file.CodecZstd} {
		for _, payload := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("shale"), 1000)} {
			stored, err := file.SealPage(nil, payload, codec)
			parttest.Must(f, err)
			f.Add(stored)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		// The checksum is made valid, so that decoding goes on.
		if len(b) >= file.ChecksumBytes {
			b = binary.LittleEndian.AppendUint32(b[:len(b)-file.ChecksumBytes:len(b)-file.ChecksumBytes], file.Checksum(b[:len(b)-file.ChecksumBytes]))
		}
		payload, err := lines.DecodePage(b)
		if err != nil {
			if !errors.Is(err, model.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if len(payload) > file.MaxPageBytes {
			t.Fatalf("%d bytes", len(payload))
		}
	})
}
