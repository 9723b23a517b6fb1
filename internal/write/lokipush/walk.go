package lokipush

import (
	"bytes"
	"fmt"
	"math"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/wire"
)

// walker turns a decoded body into a batch.
type walker struct {
	decoded []byte
	streams *logs.Streams
	rules   *logs.Rules
	entries logs.Entries
	// found counts the streams of the body, including those without lines.
	found int
	// arena holds the unescaped JSON strings of one line.
	arena []byte
}

// start prepares the walker for a body.
func (w *walker) start(streams *logs.Streams, rules *logs.Rules, decoded []byte, b *model.Batch, reserve func(int64) error) {
	w.decoded, w.streams, w.rules, w.found = decoded, streams, rules, 0
	w.entries.Start(rules, b, len(decoded), reserve)
}

// memory returns the bytes that the walker keeps between requests.
func (w *walker) memory() int { return cap(w.arena) + w.entries.Memory() }

// walk parses the whole body.
func (w *walker) walk(m message) error {
	if m == jsonMessage {
		return w.walkJSON()
	}
	return w.walkProtobuf()
}

// walkProtobuf parses a PushRequest.
func (w *walker) walkProtobuf() error {
	d := w.decoded
	for p := 0; p < len(d); {
		number, kind, next, err := wire.Field(d, p, len(d))
		if err != nil {
			return err
		}
		if number != 1 {
			if p, err = wire.Skip(d, next, len(d), kind); err != nil {
				return err
			}
			continue
		}
		begin, stop, err := wire.Message("a stream", d, kind, next, len(d))
		if err != nil {
			return err
		}
		if err := w.stream(begin, stop); err != nil {
			return err
		}
		p = stop
	}
	return nil
}

// stream parses the Stream message in [p, end) in two passes, because the labels may come after the
// entries.
func (w *walker) stream(p, end int) error {
	w.found++
	d := w.decoded
	var labels []byte
	entries := 0
	for at := p; at < end; {
		number, kind, next, err := wire.Field(d, at, end)
		if err != nil {
			return err
		}
		if number != 1 && number != 2 {
			if at, err = wire.Skip(d, next, end, kind); err != nil {
				return err
			}
			continue
		}
		begin, stop, err := wire.Message([...]string{1: "labels", 2: "an entry"}[number], d, kind, next, end)
		if err != nil {
			return err
		}
		if number == 1 {
			labels = d[begin:stop:stop]
		} else {
			entries++
		}
		at = stop
	}
	if entries == 0 {
		return nil
	}
	if err := w.entries.ExpectLabels(len(labels), bytes.Count(labels, []byte("="))); err != nil {
		return err
	}
	w.entries.Begin(w.streams.GetText(w.rules, labels))
	for at := p; at < end; {
		// The first pass has validated the message.
		number, kind, next, _ := wire.Field(d, at, end)
		if number != 2 {
			at, _ = wire.Skip(d, next, end, kind)
			continue
		}
		begin, stop, _ := wire.Body(d, next, end)
		if err := w.entry(begin, stop); err != nil {
			return err
		}
		at = stop
	}
	return w.entries.End()
}

// entry parses the Entry message in [p, end).
func (w *walker) entry(p, end int) error {
	d := w.decoded
	w.entries.Meta.Reset()
	var seconds, nanos int64
	var line []byte
	for p < end {
		number, kind, next, err := wire.Field(d, p, end)
		if err != nil {
			return err
		}
		if number > 3 {
			if p, err = wire.Skip(d, next, end, kind); err != nil {
				return err
			}
			continue
		}
		begin, stop, err := wire.Message([...]string{1: "a timestamp", 2: "a line", 3: "structured metadata"}[number], d, kind, next, end)
		if err != nil {
			return err
		}
		switch number {
		case 1:
			if seconds, nanos, err = timestamp(d, begin, stop); err != nil {
				return err
			}
		case 2:
			line = d[begin:stop:stop]
		case 3:
			name, value, err := labelPair(d, begin, stop)
			if err != nil {
				return err
			}
			w.entries.Meta.Add(name, value)
		}
		p = stop
	}
	const most = math.MaxInt64/1_000_000_000 - 1
	if nanos < 0 || nanos > 999_999_999 || seconds > most || seconds < -most {
		w.entries.LeaveOut(write.ReasonTimeRange, line, func() string {
			return fmt.Sprintf("entry has a timestamp of %d seconds and %d nanoseconds, which is not between the years 1677 and 2262", seconds, nanos)
		})
		return nil
	}
	return w.entries.Add(seconds*1_000_000_000+nanos, line)
}

// timestamp parses the Timestamp message in [p, end).
func timestamp(d []byte, p, end int) (seconds, nanos int64, err error) {
	for p < end {
		number, kind, next, err := wire.Field(d, p, end)
		if err != nil {
			return 0, 0, err
		}
		if number > 2 {
			if p, err = wire.Skip(d, next, end, kind); err != nil {
				return 0, 0, err
			}
			continue
		}
		v, next, err := wire.Number("timestamp", d, kind, next, end)
		if err != nil {
			return 0, 0, err
		}
		if number == 1 {
			seconds = int64(v)
		} else {
			nanos = int64(int32(v))
		}
		p = next
	}
	return seconds, nanos, nil
}

// labelPair parses the LabelPair message in [p, end).
func labelPair(d []byte, p, end int) (name, value []byte, err error) {
	for p < end {
		number, kind, next, err := wire.Field(d, p, end)
		if err != nil {
			return nil, nil, err
		}
		if number > 2 {
			if p, err = wire.Skip(d, next, end, kind); err != nil {
				return nil, nil, err
			}
			continue
		}
		begin, stop, err := wire.Message("the name or value of structured metadata", d, kind, next, end)
		if err != nil {
			return nil, nil, err
		}
		if number == 1 {
			name = d[begin:stop:stop]
		} else {
			value = d[begin:stop:stop]
		}
		p = stop
	}
	return name, value, nil
}
