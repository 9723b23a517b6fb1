package promwrite

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/wire"
)

// oddLabel parses a label that label does not handle. It may be longer than 127 bytes and still
// canonical. Or it is not canonical: not adjacent to the previous label, without a value, or with its
// fields in another order.
func (w *walker) oddLabel(s *seriesWalk, p, end int) (next int, err error) {
	begin, stop, err := wire.Body(w.decoded, p+1, end)
	if err != nil {
		return 0, err
	}
	name, value, minimal, err := labelMessage(w.decoded, begin, stop)
	if err != nil {
		return 0, err
	}
	if p != s.end || !minimal || begin-p != 1+protowire.SizeVarint(uint64(stop-begin)) || len(name) == 0 || len(value) == 0 {
		s.plain = false
		return stop, nil
	}
	w.keys.Label(name, value)
	s.named = s.named || string(name) == model.NameLabel
	s.end = stop
	return stop, nil
}

// labelMessage parses the Label message in [p, end). minimal means that its bytes are its canonical
// form.
func labelMessage(d []byte, p, end int) (name, value []byte, minimal bool, err error) {
	size := end - p
	at := [3]int{}
	for p < end {
		number, kind, next, err := wire.Field(d, p, end)
		if err != nil {
			return nil, nil, false, err
		}
		if number > 2 {
			if next, err = wire.Skip(d, next, end, kind); err != nil {
				return nil, nil, false, err
			}
			p = next
			continue
		}
		begin, stop, err := wire.Message("a label's name or value", d, kind, next, end)
		if err != nil {
			return nil, nil, false, err
		}
		at[number] = p
		if number == 1 {
			name = d[begin:stop:stop]
		} else {
			value = d[begin:stop:stop]
		}
		p = stop
	}
	least := 2 + protowire.SizeBytes(len(name)) + protowire.SizeBytes(len(value))
	return name, value, size == least && at[1] < at[2], nil
}

// leastLabel is the size of a label without a name or a value. Where a series of so many bytes cannot have
// more than fewLabels, its labels are not counted.
const (
	leastLabel = 2
	fewLabels  = 1 << 10
)

// rebuild writes the labels of the TimeSeries message in [p, end) to the arena in canonical form and
// passes them to the key builder. If a name occurs twice, the labels keep their order, and the write
// path rejects them when it builds them. It reserves memory first.
func (w *walker) rebuild(s *seriesWalk, p, end int) (span, error) {
	n := (end - p) / leastLabel
	if n > fewLabels {
		n = 0
		each(w.decoded, p, end, func(number int32, _, _ int) {
			if number == 1 {
				n++
			}
		})
	}
	if err := w.roomForLabels(n, model.LabelBuildBytes); err != nil {
		return span{}, err
	}
	// A label without a name or a value gets an empty one.
	if err := w.roomInArena(end - p + 4*n); err != nil {
		return span{}, err
	}
	w.labels.Reset()
	w.labels.Size(n)
	w.keys.Reset()
	s.named = false
	for p < end {
		// The first pass has validated the message.
		number, kind, next, _ := wire.Field(w.decoded, p, end)
		if number != 1 {
			p, _ = wire.Skip(w.decoded, next, end, kind)
			continue
		}
		begin, stop, _ := wire.Body(w.decoded, next, end)
		name, value, _, _ := labelMessage(w.decoded, begin, stop)
		w.labels.Add(name, value)
		if len(value) > 0 {
			w.keys.Label(name, value)
			s.named = s.named || string(name) == model.NameLabel
		}
		p = stop
	}
	at := len(w.arena)
	arena, err := w.labels.Append(w.arena)
	if err != nil {
		arena = arena[:at]
		for i := range w.labels.Len() {
			w.one.Reset()
			w.one.Add(w.labels.At(i))
			arena, _ = w.one.Append(arena) // a single label is unique
		}
	}
	w.arena = arena
	return span{uint32(at) | inArena, uint32(len(arena) - at)}, nil
}
