package promwrite

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	bodies "github.com/shaledb/shale/internal/write/body"
	"github.com/shaledb/shale/internal/write/wire"
)

// growParts makes room for another part of an election. other counts it.
func growParts(parts []electedPart) []electedPart {
	if len(parts) == cap(parts) {
		return model.Sized(parts, max(8, 2*len(parts)))
	}
	return parts
}

// other returns the bytes that are used besides the body and the batch.
func (w *walker) other() int64 {
	return write.Held(w.arena, w.roomy.arena) + write.Held(w.metadata, w.roomy.metadata) +
		write.Held(w.symbolic.symbols, w.roomy.symbols) + write.Held(w.election.parts, 0) + w.scratch
}

// reserveRows reserves memory for the rows and labels that have been added.
func (w *walker) reserveRows() error { return w.room.Reserve(w.room.Used() + w.other()) }

// grow makes room for all further rows and series, from the current series on. It counts and reserves them
// before it allocates any. Growing by append would allocate five times as much in all, which is reserved
// nowhere: it stays until the garbage collector has run, which on a busy machine is after the request.
func (w *walker) grow() error {
	b, n := w.batch, w.rest()
	if err := w.room.Series(len(b.Keys)+max(n.series, 1), w.other()); err != nil {
		return err
	}
	if err := w.room.Rows(model.Samples, b.Samples.Len()+max(n.samples, 1), w.other()); err != nil {
		return err
	}
	return w.room.Rows(model.Exemplars, b.Exemplars.Len()+n.exemplars, w.other())
}

// content counts what is left of a body. It may count a few that will be left out.
type content struct{ series, samples, exemplars, metadata int }

// rest counts from the current series on, up to the first malformed field.
func (w *walker) rest() (n content) {
	top, samples, histograms, exemplars := int32(1), int32(2), int32(4), int32(3)
	if w.version == v2 {
		top, histograms, exemplars = 5, 3, 4
	}
	each(w.decoded, w.at, len(w.decoded), func(number int32, begin, stop int) {
		if number == 3 && w.version == v1 {
			n.metadata++
		}
		if number != top {
			return
		}
		n.series++
		each(w.decoded, begin, stop, func(number int32, _, _ int) {
			switch number {
			case samples, histograms:
				n.samples++
			case exemplars:
				n.exemplars++
			case 5:
				n.metadata++ // of version 2
			}
		})
	})
	return n
}

// each calls f with the number and the content of each field that has bytes.
func each(d []byte, p, end int, f func(number int32, begin, stop int)) {
	for p < end {
		number, kind, next, err := wire.Field(d, p, end)
		if err != nil {
			return
		}
		if p, err = wire.Skip(d, next, end, kind); err != nil {
			return
		}
		if kind == protowire.BytesType {
			begin, stop, _ := wire.Body(d, next, end)
			f(number, begin, stop)
		}
	}
}

// roomForBlob makes room for a blob of a family, and for its row.
func (w *walker) roomForBlob(f model.Family, bytes int) error {
	c := w.batch.Columns(f)
	n := len(c.Bytes) + bytes
	if n > bodies.MaxDecoded {
		return tooLarge("stored histograms or exemplars", int64(n), "limits.decoded-bytes", bodies.MaxDecoded)
	}
	if len(c.Times) == cap(c.Times) {
		if err := w.grow(); err != nil {
			return err
		}
	}
	if n <= cap(c.Bytes) {
		return nil
	}
	return w.room.Blob(f, bytes, bodies.MaxDecoded, w.other())
}

// roomInArena makes room for so many more bytes in the arena.
func (w *walker) roomInArena(bytes int) error {
	if n := len(w.arena) + bytes; n > cap(w.arena) {
		n = max(n, 2*cap(w.arena))
		if err := w.room.Reserve(w.room.Used() + w.other() + int64(n)); err != nil {
			return err
		}
		w.arena = model.Sized(w.arena, n)
	}
	return nil
}

// roomForMetadata makes room for the metadata of one more family.
func (w *walker) roomForMetadata() error {
	if len(w.metadata) < cap(w.metadata) {
		return nil
	}
	n := len(w.metadata) + w.rest().metadata + 1
	if err := w.room.Reserve(w.room.Used() + w.other() + int64(n)*metadataBytes); err != nil {
		return err
	}
	w.metadata = model.Sized(w.metadata, n)
	return nil
}

// refBytes is the memory of a reference in all lists that it is in.
const refBytes = 48

// roomForLabels reserves memory for n labels or references of one series at a time, of that many bytes each.
func (w *walker) roomForLabels(n int, bytes int64) error {
	const few = 64 << 10
	if bytes *= int64(n); bytes <= max(few, w.scratch) {
		return nil
	}
	w.scratch = bytes
	return w.reserveRows()
}

// roomForReferences reserves memory for the labels of the current series in version 2.
func (w *walker) roomForReferences() error {
	n, bytes := len(w.symbolic.series.list), int64(refBytes)
	if w.symbolic.series.tooMany { // they are not expanded
		bytes = 2 * 4
	}
	if err := w.roomForLabels(n, bytes); err != nil {
		return err
	}
	if w.election.elector != nil {
		return w.roomInArena(n * binary.MaxVarintLen32) // those without the replica
	}
	return nil
}
