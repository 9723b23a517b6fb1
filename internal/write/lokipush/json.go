package lokipush

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/wire"
)

// walkJSON parses a JSON body of either form: an object in which only the array of streams matters.
func (w *walker) walkJSON() error {
	s := &scanner{b: w.decoded, expectText: w.entries.ExpectText}
	if err := s.expect('{'); err != nil {
		return err
	}
	for n := 0; ; n++ {
		more, err := s.more(n, '}')
		if err != nil {
			return err
		}
		if !more {
			break
		}
		name, err := s.name()
		if err != nil {
			return err
		}
		if !bytes.EqualFold(name, []byte("streams")) {
			err = s.skip(0)
		} else if !s.null() {
			err = s.array(func() error { w.found++; return w.jsonStream(s) })
		}
		if err != nil {
			return err
		}
	}
	if s.space(); s.p < len(s.b) {
		return s.malformed("more than one JSON value")
	}
	return nil
}

// array parses an array and calls item for each item.
func (s *scanner) array(item func() error) error {
	if err := s.expect('['); err != nil {
		return err
	}
	for n := 0; ; n++ {
		more, err := s.more(n, ']')
		if err != nil || !more {
			return err
		}
		if err := item(); err != nil {
			return err
		}
	}
}

// members locates the labels and the entries of a stream, which may come in either order.
type members struct {
	// labelsAt and entriesAt are their offsets, or -1.
	labelsAt, labelsEnd, entriesAt int
}

// findMembers parses an object, of which n members have been parsed already, to locate its labels and
// entries. If the labels come first, it stops before the entries and returns open.
func (s *scanner) findMembers(m *members, n int) (next int, open bool, err error) {
	for ; ; n++ {
		more, err := s.more(n, '}')
		if err != nil || !more {
			return n, false, err
		}
		name, err := s.name()
		if err != nil {
			return n, false, err
		}
		s.space()
		at := s.p
		switch string(name) {
		case "stream", "labels":
			if m.labelsAt >= 0 {
				return n, false, s.malformed("a stream with labels twice")
			}
			err = s.skip(0)
			m.labelsAt, m.labelsEnd = at, s.p
		case "values", "entries":
			if m.entriesAt >= 0 {
				return n, false, s.malformed("a stream with entries twice")
			}
			m.entriesAt = at
			if m.labelsAt >= 0 {
				return n + 1, true, nil
			}
			err = s.skip(0)
		default:
			err = s.skip(0)
		}
		if err != nil {
			return n, false, err
		}
	}
}

// jsonStream parses {"stream": {...}, "values": [[...]]} or {"labels": "...", "entries": [{...}]}, or a
// mixture.
func (w *walker) jsonStream(s *scanner) error {
	if err := s.expect('{'); err != nil {
		return err
	}
	m := members{labelsAt: -1, entriesAt: -1}
	n, open, err := s.findMembers(&m, 0)
	if err != nil {
		return err
	}
	if m.entriesAt < 0 {
		return nil
	}
	var raw []byte
	if m.labelsAt >= 0 {
		raw = s.b[m.labelsAt:m.labelsEnd:m.labelsEnd]
	}
	// An object has a colon for each label, and a string has an equals sign.
	if err := w.entries.ExpectLabels(len(raw), bytes.Count(raw, []byte(":"))+bytes.Count(raw, []byte("="))); err != nil {
		return err
	}
	w.entries.Begin(atByte(m.labelsAt, w.streams.Get(w.rules, raw, readJSONLabels)))
	end := s.p
	s.p = m.entriesAt
	if !s.null() {
		if err := s.array(func() error { return w.jsonEntry(s) }); err != nil {
			return err
		}
	}
	if !open {
		s.p = end
		return w.entries.End()
	}
	if _, _, err := s.findMembers(&m, n); err != nil {
		return err
	}
	return w.entries.End()
}

// jsonEntry parses an entry of either form.
func (w *walker) jsonEntry(s *scanner) error {
	if s.null() {
		return nil
	}
	w.entries.Meta.Reset()
	w.arena = w.arena[:0]
	if s.space() == '{' {
		return w.legacyEntry(s)
	}
	return w.arrayEntry(s)
}

// arrayEntry parses ["time", "line", {"name": "value"}]. As in Loki, missing items are empty.
func (w *walker) arrayEntry(s *scanner) error {
	var t int64
	var never, line []byte
	n := 0
	err := s.array(func() (err error) {
		switch n++; n {
		case 1:
			t, never, err = s.time()
		case 2:
			line, err = s.plain("a line", &w.arena)
		case 3:
			err = w.jsonMetadata(s)
		default:
			err = s.skip(0)
		}
		return err
	})
	if err != nil {
		return err
	}
	switch {
	case n == 0:
		w.entries.LeaveOut(write.ReasonTimeRange, nil, func() string { return "entry has no timestamp" })
		return nil
	case never != nil:
		w.leaveOutTime(never, line)
		return nil
	}
	return w.entries.Add(t, line)
}

// leaveOutTime rejects a line whose number of nanoseconds has more than 64 bits. It is a separate
// function so that its arguments escape to the heap for such lines only.
func (w *walker) leaveOutTime(raw, line []byte) {
	const most = 40 // digits
	w.entries.LeaveOut(write.ReasonTimeRange, line, func() string {
		digits := string(raw[:min(len(raw), most)])
		if len(raw) > most {
			digits += "..."
		}
		return "entry has a timestamp of " + digits + " nanoseconds, which is not between the years 1677 and 2262"
	})
}

// time parses a string with a number of nanoseconds. If the number exceeds 64 bits, never is its
// spelling.
func (s *scanner) time() (t int64, never []byte, err error) {
	at := s.p
	raw, _, err := s.text("a timestamp")
	if err != nil {
		return 0, nil, err
	}
	t, fits, ok := parseInt(raw)
	switch {
	case !ok:
		s.p = at
		return 0, nil, s.malformed("a timestamp that is not a number of nanoseconds")
	case !fits:
		return 0, raw, nil
	}
	return t, nil, nil
}

// parseInt parses a decimal integer without allocating. It returns ok if raw is an integer of any size,
// and fits if the integer fits into 64 bits.
func parseInt(raw []byte) (v int64, fits, ok bool) {
	digits := raw
	if len(raw) > 0 && raw[0] == '-' {
		digits = raw[1:]
	}
	const most = 1 << 63 // the smallest int64 without its sign
	var u uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false, false
		}
		if u > most/10 {
			u = math.MaxUint64 // stays too large for all further digits
			continue
		}
		u = u*10 + uint64(c-'0')
	}
	switch {
	case len(digits) == 0:
		return 0, false, false
	case len(digits) < len(raw):
		return -int64(u), u <= most, true
	}
	return int64(u), u < most, true
}

// jsonMetadata parses the structured metadata of a line.
func (w *walker) jsonMetadata(s *scanner) error {
	if err := s.expect('{'); err != nil {
		return err
	}
	for n := 0; ; n++ {
		more, err := s.more(n, '}')
		if err != nil || !more {
			return err
		}
		name, err := s.plain("the name of structured metadata", &w.arena)
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		value, err := s.plain("the value of structured metadata", &w.arena)
		if err != nil {
			return err
		}
		w.entries.Meta.Add(name, value)
	}
}

// atByte returns st with the error about its labels, if any, moved to their offset in the body. The
// stream itself is shared by all bodies that spell its labels in the same way.
func atByte(begin int, st *logs.Stream) *logs.Stream {
	var m *wire.Malformed
	if st.Err == nil || !errors.As(st.Err, &m) {
		return st
	}
	return logs.InvalidStream(&wire.Malformed{What: m.What, At: begin + m.At})
}

// readJSONLabels adds the labels of a JSON object, or of a JSON string of the form {a="b"}. Like Loki,
// it writes the object as {a="b"} and parses that, so that the same names are allowed and the errors
// are the same.
func readJSONLabels(raw []byte, lb *model.LabelsBuilder) error {
	s := &scanner{b: raw}
	switch {
	case len(raw) == 0:
		return logs.ParseLabels(nil, lb)
	case s.space() == '"':
		var arena []byte
		text, err := s.plain("the labels of a stream", &arena)
		if err != nil {
			return err
		}
		return logs.ParseLabels(text, lb)
	case s.space() != '{':
		return s.malformed("stream labels that are neither an object nor a string")
	}
	s.p++
	values := make(map[string]string)
	for n := 0; ; n++ {
		more, err := s.more(n, '}')
		if err != nil {
			return err
		}
		if !more {
			break
		}
		var arena []byte
		name, err := s.plain("a label's name", &arena)
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		value, err := s.scalar(&arena)
		if err != nil {
			return err
		}
		values[string(name)] = string(value)
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	text := []byte{'{'}
	for i, name := range names {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = append(append(text, name...), '=')
		text = strconv.AppendQuote(text, values[name])
	}
	return logs.ParseLabels(append(text, '}'), lb)
}

// scalar parses a string, or returns the spelling of a number or a word.
func (s *scanner) scalar(arena *[]byte) ([]byte, error) {
	switch s.space() {
	case '"':
		return s.plain("a label's value", arena)
	case '{', '[':
		return nil, s.malformed("a label's value that is not a string")
	}
	begin := s.p
	err := s.skip(0)
	return s.b[begin:s.p], err
}
