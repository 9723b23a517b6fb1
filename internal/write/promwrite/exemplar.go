package promwrite

import (
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/wire"
)

// maxExemplarRunes bounds the characters in the names and values of an exemplar's labels together, as
// in OpenMetrics and Prometheus.
const maxExemplarRunes = 128

// maxExemplarBytes bounds a stored exemplar: its value, and each label with its lengths.
const maxExemplarBytes = 16 + maxExemplarRunes*(utf8.UTFMax+12)

// exemplarNumbers are the fields of an exemplar that both versions have: the bits of the value, and the
// time in milliseconds.
type exemplarNumbers struct{ value, ms uint64 }

// field reads or skips field n, whose content begins at p, and returns where it ends.
func (e *exemplarNumbers) field(d []byte, n int32, kind protowire.Type, p, end int) (next int, err error) {
	switch n {
	case 2:
		e.value, next, err = wire.Double("value of an exemplar", d, kind, p, end)
	case 3:
		e.ms, next, err = wire.Number("timestamp", d, kind, p, end)
	default:
		next, err = wire.Skip(d, p, end, kind)
	}
	return next, err
}

// exemplarV1 parses the Exemplar message of version 1 in [p, end).
func (w *walker) exemplarV1(p, end int) error {
	d := w.decoded
	var numbers exemplarNumbers
	w.one.Reset()
	for p < end {
		n, kind, next, err := wire.Field(d, p, end)
		switch {
		case err != nil:
		case n == 1:
			var begin int
			if begin, next, err = wire.Message("a label of an exemplar", d, kind, next, end); err == nil {
				var name, value []byte
				name, value, _, err = labelMessage(d, begin, next)
				if w.one.Len() <= maxExemplarRunes { // as in version 2
					w.one.Add(name, value)
				}
			}
		default:
			next, err = numbers.field(d, n, kind, next, end)
		}
		if err != nil {
			return err
		}
		p = next
	}
	return w.addExemplar(numbers.value, int64(numbers.ms))
}

// exemplarV2 parses the Exemplar message of version 2 in [p, end).
func (w *walker) exemplarV2(p, end int) error {
	d, symbols, refs := w.decoded, w.symbolic.symbols, &w.symbolic.other
	var numbers exemplarNumbers
	refs.reset()
	for p < end {
		n, kind, next, err := wire.Field(d, p, end)
		switch {
		case err != nil:
		case n == 1 && kind == protowire.VarintType:
			begin := next
			if _, next, err = wire.Number("reference", d, kind, next, end); err == nil {
				err = refs.collect(d, begin, next)
			}
		case n == 1:
			var begin int
			if begin, next, err = wire.Message("references of an exemplar", d, kind, next, end); err == nil {
				err = refs.collect(d, begin, next)
			}
		default:
			next, err = numbers.field(d, n, kind, next, end)
		}
		if err != nil {
			return err
		}
		p = next
	}
	if err := w.roomForLabels(len(refs.list), refBytes); err != nil {
		return err
	}
	if reason, why := refs.check(len(symbols)); reason != "" {
		w.leaveOut(reason, write.Counts{Exemplars: 1}, func() string { return "exemplar: " + why() })
		return nil
	}
	w.one.Reset()
	for i := 0; i+1 < len(refs.list); i += 2 {
		if w.one.Len() > maxExemplarRunes {
			break // every label has at least one character, so there are too many already
		}
		w.one.Add(symbols[refs.list[i]].slice(d), symbols[refs.list[i+1]].slice(d))
	}
	return w.addExemplar(numbers.value, int64(numbers.ms))
}

// addExemplar adds an exemplar with the labels of w.one.
func (w *walker) addExemplar(value uint64, ms int64) error {
	n := write.Counts{Exemplars: 1}
	t, ok := nanoseconds(ms)
	if !ok {
		w.leaveOutTime(n, ms, 0)
		return nil
	}
	runes := 0
	for i := range w.one.Len() {
		name, value := w.one.At(i)
		// A label with too many bytes has too many characters and is not examined.
		short := len(name)+len(value) <= maxExemplarRunes*utf8.UTFMax
		if short && (!utf8.Valid(name) || !utf8.Valid(value)) {
			w.leaveOut(write.ReasonLabels, n, func() string { return "the labels of an exemplar are not valid UTF-8" })
			return nil
		}
		if short {
			runes += utf8.RuneCount(name) + utf8.RuneCount(value)
		}
		if !short || runes > maxExemplarRunes {
			w.leaveOut(write.ReasonExemplar, n, func() string {
				return fmt.Sprintf("the labels of an exemplar have more than %d characters", maxExemplarRunes)
			})
			return nil
		}
	}
	c := &w.batch.Exemplars
	if err := w.roomForBlob(model.Exemplars, maxExemplarBytes); err != nil {
		return err
	}
	begin := len(c.Bytes)
	// The value comes before the labels, so that the labels can be built in place.
	c.Bytes = model.AppendExemplar(c.Bytes, &model.Exemplar{Value: value})
	labels, err := w.one.Append(c.Bytes)
	if err != nil {
		c.Bytes = c.Bytes[:begin]
		w.leaveOut(write.ReasonDuplicateLabel, n, func() string { return "exemplar: " + err.Error() })
		return nil
	}
	c.Bytes = labels
	c.EndBlob(t, model.KindExemplar, begin, 0)
	if c.Len()&0xff == 0 {
		return w.reserveRows()
	}
	return nil
}
