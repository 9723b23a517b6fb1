package promwrite

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// maxDecoded keeps every offset, and with at least two bytes a sample every count of rows, below the 31 bits that spans
// and the ends of a batch have.
const maxDecoded = 1<<31 - 1

// The memory of the columns, in bytes, that a walk reserves beside the decoded body, and the steps in which it does. A
// sample can be as short as two bytes on the wire, so the body's size says little of the columns'.
const (
	rowBytes    = 16
	seriesBytes = model.KeyBytes + 4 + 8
	reserveStep = 256 << 10
)

// walker turns a decoded body into a batch. It is the batch's [model.LabelSource] until the push has returned.
type walker struct {
	keys    model.KeyBuilder
	decoded []byte
	batch   *model.Batch
	// spans says for each series of the batch where its labels lie.
	spans []span
	// arena holds the labels of series whose bytes could not be taken as they stand.
	arena  []byte
	labels model.LabelsBuilder
	one    model.LabelsBuilder

	// reserve asks for memory before it is used; reserved is what it gave so far.
	reserve  func(bytes int64) error
	reserved int64

	received  int // float samples, also those that are left out
	exemplars int
	left      []write.Rejection
}

// span is a piece of the decoded body, or, with the top bit of at set, of the arena.
type span struct{ at, size uint32 }

const inArena = 1 << 31

func (s span) bytes(w *walker) model.Labels {
	if s.at&inArena != 0 {
		at := s.at &^ inArena
		return model.Labels(w.arena[at : at+s.size])
	}
	return model.Labels(w.decoded[s.at : s.at+s.size])
}

// start readies the walker for a body.
func (w *walker) start(decoded []byte, seed model.KeySeed, b *model.Batch, reserve func(int64) error) {
	w.keys.Seed, w.keys.Signal = seed, model.Metrics
	w.decoded, w.batch, w.reserve, w.reserved = decoded, b, reserve, 0
	w.spans, w.arena = w.spans[:0], w.arena[:0]
	w.received, w.exemplars, w.left = 0, 0, nil
	b.Source = w
}

// BuildLabels adds the labels of series i.
func (w *walker) BuildLabels(i int, b *model.LabelsBuilder) {
	for name, value, rest, ok := w.spans[i].bytes(w).Next(); ok; name, value, rest, ok = rest.Next() {
		b.Add(name, value)
	}
}

// walk reads the whole body. Its error is a *malformed, or what reserve returned.
func (w *walker) walk() error {
	d := w.decoded
	for p := 0; p < len(d); {
		number, wire, next, err := field(d, p, len(d))
		if err != nil {
			return err
		}
		switch number {
		case 1:
			err = wantBytes("a time series", wire, p)
		case 3:
			err = wantBytes("metadata", wire, p)
		case 4, 5: // symbols and time series of version 2, which would be lost without a word
			err = &malformed{"a message of remote write 2.0, sent as 1.0; Shale takes 1.0", p}
		}
		if err != nil {
			return err
		}
		if number != 1 {
			if p, err = skip(d, next, len(d), wire); err != nil {
				return err
			}
			continue
		}
		begin, stop, err := body(d, next, len(d))
		if err != nil {
			return err
		}
		if err := w.series(begin, stop); err != nil {
			return err
		}
		p = stop
	}
	return nil
}

// seriesWalk is what is known of a series half way through its message.
type seriesWalk struct {
	// labels are the bytes from begin to end, if plain.
	begin, end int
	// plain: the labels stand together and each is canonical, so that they can be hashed where they are.
	plain, named bool
	samples      int
	histograms   int
	// badTimes counts the samples whose time is no int64 of nanoseconds; badTime is one of them, in milliseconds.
	badTimes int
	badTime  int64
}

// series reads the TimeSeries message in [p, end).
func (w *walker) series(p, end int) error {
	d, begin := w.decoded, p
	s := seriesWalk{begin: p, end: p, plain: true}
	w.keys.Reset()
	for p < end {
		switch d[p] {
		case 0x0a:
			next := w.label(&s, p, end)
			if next < 0 {
				var err error
				if next, err = w.oddLabel(&s, p, end); err != nil {
					return err
				}
			}
			p = next
		case 0x12:
			from, stop, err := body(d, p+1, end)
			if err != nil {
				return err
			}
			if err := w.sample(&s, from, stop); err != nil {
				return err
			}
			p = stop
		default:
			next, err := w.other(&s, p, end)
			if err != nil {
				return err
			}
			p = next
		}
	}
	return w.endSeries(&s, begin, end)
}

// label reads a label in canonical form with lengths of one byte, which nearly all are. It returns -1 if this is
// not one.
func (w *walker) label(s *seriesWalk, p, end int) (next int) {
	d := w.decoded[:end]
	if len(d)-p < 6 || p != s.end {
		return -1
	}
	size, n := int(d[p+1]), int(d[p+3])
	stop, at := p+2+size, p+4+n // the end of the label and of its name
	if size >= 0x80 || d[p+2] != 0x0a || n == 0 || n >= 0x80 || stop > len(d) || at+2 > stop {
		return -1
	}
	v := int(d[at+1])
	if d[at] != 0x12 || v == 0 || at+2+v != stop {
		return -1
	}
	name := d[p+4 : at]
	w.keys.Label(name, d[at+2:stop])
	s.named = s.named || string(name) == model.NameLabel
	s.end = stop
	return stop
}

// sample reads the Sample message in [p, end).
func (w *walker) sample(s *seriesWalk, p, end int) error {
	var value, ms uint64
	d := w.decoded[:end]
	if end-p >= 11 && d[p] == 0x09 && d[p+9] == 0x10 {
		next := 0
		if ms, next = varint(d, p+10, end); next == end {
			value = binary.LittleEndian.Uint64(d[p+1:])
			return w.addSample(s, value, int64(ms))
		}
	}
	value, ms = 0, 0
	for p < end {
		number, wire, next, err := field(d, p, end)
		switch {
		case err != nil:
			return err
		case number == 1 && wire == wire64 && end-next >= 8:
			value, next = binary.LittleEndian.Uint64(d[next:]), next+8
		case number == 1:
			return &malformed{"a sample whose value is not a double", p}
		case number == 2 && wire != wireVarint:
			return &malformed{"a sample whose timestamp is not a number", p}
		case number == 2:
			at := next
			if ms, next = varint(d, next, end); next < 0 {
				return &malformed{"a cut off or oversized timestamp", at}
			}
		default:
			if next, err = skip(d, next, end, wire); err != nil {
				return err
			}
		}
		p = next
	}
	return w.addSample(s, value, int64(ms))
}

func (w *walker) addSample(s *seriesWalk, value uint64, ms int64) error {
	const limit = math.MaxInt64 / 1_000_000
	s.samples++
	if ms > limit || ms < -limit {
		s.badTimes++
		s.badTime = ms
		return nil
	}
	rows := &w.batch.Samples
	rows.Times = append(rows.Times, ms*1_000_000)
	rows.Values = append(rows.Values, value)
	if len(rows.Times)&0xfff == 0 {
		return w.room()
	}
	return nil
}

// other reads a field of a series that is neither a label nor a sample in its usual spelling.
func (w *walker) other(s *seriesWalk, p, end int) (next int, err error) {
	number, wire, next, err := field(w.decoded, p, end)
	if err != nil {
		return 0, err
	}
	what := ""
	switch number {
	case 1:
		what = "a label"
	case 2:
		what = "a sample"
	case 3:
		what = "an exemplar"
		w.exemplars++
	case 4:
		what = "a histogram"
		s.histograms++
	default:
		return skip(w.decoded, next, end, wire)
	}
	if err := wantBytes(what, wire, p); err != nil {
		return 0, err
	}
	begin, stop, err := body(w.decoded, next, end)
	switch {
	case err != nil:
		return 0, err
	case number == 1: // its tag has more bytes than it needs
		_, _, _, err = labelMessage(w.decoded, begin, stop)
		s.plain = false
	case number == 2:
		err = w.sample(s, begin, stop)
	}
	return stop, err
}

// endSeries adds the rows of a series to the batch under its key.
func (w *walker) endSeries(s *seriesWalk, begin, end int) error {
	w.received += s.samples
	if s.samples == 0 && s.histograms == 0 {
		return nil
	}
	at := span{uint32(s.begin), uint32(s.end - s.begin)}
	if !s.plain {
		at = w.rebuild(s, begin, end)
	}
	if s.histograms > 0 {
		w.leaveOut(write.ReasonUnsupported, s.histograms, at, "native histograms are not stored yet")
	}
	if s.badTimes > 0 {
		w.leaveOut(write.ReasonTimeRange, s.badTimes, at, fmt.Sprintf("the time %d ms is not between the years 1677 and 2262", s.badTime))
	}
	rows := s.samples - s.badTimes
	if rows == 0 {
		return nil
	}
	if !s.named {
		times := &w.batch.Samples
		times.Times, times.Values = times.Times[:len(times.Times)-rows], times.Values[:len(times.Values)-rows]
		w.leaveOut(write.ReasonLabels, rows, at, "the series has no metric name")
		return nil
	}
	w.spans = append(w.spans, at)
	w.batch.EndSeries(w.keys.Key(at.bytes(w)))
	return w.room()
}

// room reserves memory for the columns ahead of their use.
func (w *walker) room() error {
	used := int64(len(w.batch.Samples.Times))*rowBytes + int64(len(w.spans))*seriesBytes + int64(len(w.arena))
	if used <= w.reserved {
		return nil
	}
	step := max(used-w.reserved, reserveStep)
	if err := w.reserve(step); err != nil {
		return err
	}
	w.reserved += step
	return nil
}
