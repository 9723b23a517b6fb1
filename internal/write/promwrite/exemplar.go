package promwrite

import (
	"fmt"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// maxExemplarRunes is how many characters the names and values of an exemplar's labels may have together, as OpenMetrics
// and Prometheus have it.
const maxExemplarRunes = 128

// exemplarV1 reads the Exemplar message of version 1 in [p, end).
func (w *walker) exemplarV1(p, end int) error {
	d := w.decoded
	var value, ms uint64
	w.one.Reset()
	for p < end {
		n, wire, next, err := field(d, p, end)
		switch {
		case err != nil:
		case n == 1:
			var begin int
			if begin, next, err = message("a label of an exemplar", d, wire, next, end); err == nil {
				var name, value []byte
				name, value, _, err = labelMessage(d, begin, next)
				w.one.Add(name, value)
			}
		case n == 2:
			value, next, err = double("value of an exemplar", d, wire, next, end)
		case n == 3:
			ms, next, err = number("timestamp", d, wire, next, end)
		default:
			next, err = skip(d, next, end, wire)
		}
		if err != nil {
			return err
		}
		p = next
	}
	return w.addExemplar(value, int64(ms))
}

// exemplarV2 reads the Exemplar message of version 2 in [p, end).
func (w *walker) exemplarV2(p, end int) error {
	d, symbols, refs := w.decoded, w.symbolic.symbols, &w.symbolic.other
	var value, ms uint64
	refs.reset()
	for p < end {
		n, wire, next, err := field(d, p, end)
		switch {
		case err != nil:
		case n == 1 && wire == wireVarint:
			begin := next
			if _, next, err = number("reference", d, wire, next, end); err == nil {
				err = refs.collect(d, begin, next)
			}
		case n == 1:
			var begin int
			if begin, next, err = message("references of an exemplar", d, wire, next, end); err == nil {
				err = refs.collect(d, begin, next)
			}
		case n == 2:
			value, next, err = double("value of an exemplar", d, wire, next, end)
		case n == 3:
			ms, next, err = number("timestamp", d, wire, next, end)
		default:
			next, err = skip(d, next, end, wire)
		}
		if err != nil {
			return err
		}
		p = next
	}
	if reason, why := refs.check(len(symbols)); reason != "" {
		w.leaveOut(reason, write.Counts{Exemplars: 1}, func() string { return "of an exemplar, " + why() })
		return nil
	}
	w.one.Reset()
	for i := 0; i+1 < len(refs.list); i += 2 {
		if w.one.Len() > maxExemplarRunes {
			break // each has a value of at least one character, so that they are too many already
		}
		w.one.Add(symbols[refs.list[i]].of(d), symbols[refs.list[i+1]].of(d))
	}
	return w.addExemplar(value, int64(ms))
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
		// What has too many bytes has too many characters, and is not looked at.
		short := len(name)+len(value) <= maxExemplarRunes*utf8.UTFMax
		if short && (!utf8.Valid(name) || !utf8.Valid(value)) {
			w.leaveOut(write.ReasonLabels, n, func() string { return "the labels of an exemplar are not UTF-8" })
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
	begin := len(c.Bytes)
	// The value stands before the labels, so that these can be built where they are to lie.
	c.Bytes = model.AppendExemplar(c.Bytes, &model.Exemplar{Value: value})
	labels, err := w.one.Append(c.Bytes)
	if err != nil {
		c.Bytes = c.Bytes[:begin]
		w.leaveOut(write.ReasonDuplicateLabel, n, func() string { return "of an exemplar: " + err.Error() })
		return nil
	}
	c.Bytes = labels
	c.EndBlob(t, model.KindExemplar, begin, 0)
	return w.room()
}
