package otlp

import (
	"bytes"
	"encoding/hex"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/wire"
)

// logWalker turns a decoded body of logs into a batch.
type logWalker struct {
	decoded []byte
	streams *logs.Streams
	rules   *logs.Rules
	entries logs.Entries
	now     int64
	// resource is the metadata that the lines of a resource share, and base that which the lines of a
	// scope share.
	resource, base logs.Metadata
	// line holds the text of a line's metadata, and shared that of a resource or scope.
	line, shared writer
	records      int
}

func (w *logWalker) start(streams *logs.Streams, rules *logs.Rules, decoded []byte, b *model.Batch, now int64, reserve func(int64) error) {
	w.decoded, w.streams, w.rules, w.now, w.records = decoded, streams, rules, now, 0
	w.line.d, w.line.reserve, w.shared.d, w.shared.reserve = decoded, reserve, decoded, reserve
	w.entries.Start(rules, b, len(decoded), reserve)
	w.line.reserved, w.shared.reserved = 0, 0
}

func (w *logWalker) memory() int { return cap(w.line.arena) + cap(w.shared.arena) + w.entries.Memory() }

// walk parses an ExportLogsServiceRequest.
func (w *logWalker) walk() error { return each(w.decoded, 0, len(w.decoded), w.resourceLogs) }

// walkShared parses a message whose field 1 describes what the items in field 2 have in common. It takes two
// passes, because field 1 may come after the items. If field 1 occurs more than once, the last one
// counts.
func walkShared(d []byte, p, end int, first func(begin, stop int) error, item func(begin, stop int) error) error {
	begin1, stop1 := p, p
	for at := p; at < end; {
		n, kind, next, err := wire.Field(d, at, end)
		if err != nil {
			return err
		}
		if n > 2 {
			if at, err = wire.Skip(d, next, end, kind); err != nil {
				return err
			}
			continue
		}
		begin, stop, err := wire.Message([...]string{1: "a resource or scope", 2: "its items"}[n], d, kind, next, end)
		if err != nil {
			return err
		}
		if n == 1 {
			begin1, stop1 = begin, stop
		}
		at = stop
	}
	if err := first(begin1, stop1); err != nil {
		return err
	}
	for at := p; at < end; {
		// The first pass has validated the message.
		n, kind, next, _ := wire.Field(d, at, end)
		if n != 2 {
			at, _ = wire.Skip(d, next, end, kind)
			continue
		}
		begin, stop, _ := wire.Body(d, next, end)
		if err := item(begin, stop); err != nil {
			return err
		}
		at = stop
	}
	return nil
}

// leastAttribute is fewer bytes than an attribute that is a label has: its name has ten, and its value two.
const leastAttribute = 12

// mostAttributes returns at least the number of labels of a resource: each begins with the tag of field 1, of
// one byte or of more.
func mostAttributes(resource []byte) int {
	tags := bytes.Count(resource, []byte{0x0a}) + bytes.Count(resource, []byte{0x8a})
	return min(tags, len(resource)/leastAttribute)
}

// resourceLogs parses the ResourceLogs message in [p, end).
func (w *logWalker) resourceLogs(p, end int) error {
	err := walkShared(w.decoded, p, end, func(begin, stop int) error {
		resource := w.decoded[begin:stop:stop]
		if err := w.entries.ExpectLabels(len(resource), mostAttributes(resource)); err != nil {
			return err
		}
		w.entries.Begin(w.streams.Get(w.rules, resource, readStream))
		w.shared.arena = w.shared.arena[:0]
		w.resource.Reset()
		return w.shared.resource(&w.resource, begin, stop, false)
	}, w.scopeLogs)
	if err != nil {
		return err
	}
	return w.entries.End()
}

// scopeLogs parses the ScopeLogs message in [p, end).
func (w *logWalker) scopeLogs(p, end int) error {
	return walkShared(w.decoded, p, end, func(begin, stop int) error {
		w.base.CopyFrom(&w.resource)
		if err := w.scope(begin, stop); err != nil {
			return err
		}
		w.base.Seal()
		return nil
	}, w.record)
}

// scope adds the fields of the InstrumentationScope message in [p, end) to the base.
func (w *logWalker) scope(p, end int) error {
	d, m := w.decoded, &w.base
	for p < end {
		n, kind, next, err := wire.Field(d, p, end)
		if err != nil {
			return err
		}
		switch {
		case n <= 3:
			begin, stop, err := wire.Message("a scope's name, version or attribute", d, kind, next, end)
			if err != nil {
				return err
			}
			switch {
			case n == 3:
				key, v, err := keyValue(d, begin, stop)
				if err != nil {
					return err
				}
				if err := w.shared.attribute(m, nil, key, v, 0); err != nil {
					return err
				}
			case begin == stop:
			case n == 1:
				m.Add(names.scopeName, d[begin:stop:stop])
			default:
				m.Add(names.scopeVersion, d[begin:stop:stop])
			}
			p = stop
		case n == 4:
			v, after, err := wire.Number("scope's count", d, kind, next, end)
			if err != nil {
				return err
			}
			if v != 0 {
				m.Add(names.scopeDropped, w.shared.number(uint64(uint32(v))))
			}
			p = after
		default:
			if p, err = wire.Skip(d, next, end, kind); err != nil {
				return err
			}
		}
	}
	return nil
}

// number formats a number in decimal.
func (w *writer) number(v uint64) []byte {
	begin := len(w.arena)
	w.arena = strconv.AppendUint(w.arena, v, 10)
	return w.arena[begin:len(w.arena):len(w.arena)]
}

// names are the names of structured metadata that is not an attribute.
var names = struct {
	scopeName, scopeVersion, scopeDropped, observed, severityNumber, severityText, dropped, flags, traceID, spanID, eventName []byte
}{
	[]byte("scope_name"), []byte("scope_version"), []byte("scope_dropped_attributes_count"), []byte("observed_timestamp"),
	[]byte("severity_number"), []byte("severity_text"), []byte("dropped_attributes_count"), []byte("flags"), []byte("trace_id"),
	[]byte("span_id"), []byte("event_name"),
}

// record is a LogRecord without its attributes.
type record struct {
	time, observed, severity, dropped uint64
	flags                             uint32
	body                              value
	severityText                      []byte
	traceID, spanID, eventName        []byte
}

// record parses the LogRecord message in [p, end) and adds its line.
func (w *logWalker) record(p, end int) error {
	w.records++
	w.line.arena = w.line.arena[:0]
	m := &w.entries.Meta
	m.ResetTo(&w.base)
	r, err := readRecord(w.decoded, p, end)
	if err != nil {
		return err
	}
	if err := w.attributes(p, end, len(r.eventName) > 0); err != nil {
		return err
	}
	if r.time != 0 && r.observed != 0 {
		m.Add(names.observed, w.line.number(r.observed))
	}
	if r.severity != 0 {
		begin := len(w.line.arena)
		w.line.arena = strconv.AppendInt(w.line.arena, int64(int32(r.severity)), 10)
		m.Add(names.severityNumber, w.line.arena[begin:len(w.line.arena):len(w.line.arena)])
	}
	if len(r.severityText) > 0 {
		m.Add(names.severityText, r.severityText)
	}
	if r.dropped != 0 {
		m.Add(names.dropped, w.line.number(uint64(uint32(r.dropped))))
	}
	if r.flags != 0 {
		m.Add(names.flags, w.line.number(uint64(r.flags)))
	}
	w.id(names.traceID, r.traceID)
	w.id(names.spanID, r.spanID)
	if len(r.eventName) > 0 {
		m.Add(names.eventName, r.eventName)
	}
	line, err := w.line.text(r.body)
	if err != nil {
		return err
	}
	return w.add(&r, line)
}

// add adds the line of a record. If the record has no time, the observed time counts, or else the
// current time.
func (w *logWalker) add(r *record, line []byte) error {
	t := r.time
	if t == 0 {
		t = r.observed
	}
	if t == 0 {
		t = uint64(w.now)
	}
	if t > math.MaxInt64 {
		w.entries.LeaveOut(write.ReasonTimeRange, line, func() string {
			return "a log record has a timestamp of " + strconv.FormatUint(t, 10) + " nanoseconds, which is beyond the year 2262"
		})
		return nil
	}
	return w.entries.Add(int64(t), line)
}

// id adds the ID of a trace or span in hexadecimal, unless all its bytes are zero.
func (w *logWalker) id(name, id []byte) {
	for _, c := range id {
		if c != 0 {
			begin := len(w.line.arena)
			w.line.arena = hex.AppendEncode(w.line.arena, id)
			w.entries.Meta.Add(name, w.line.arena[begin:len(w.line.arena):len(w.line.arena)])
			return
		}
	}
}

// attributes adds the attributes of the LogRecord message in [p, end), which has been validated. The
// record's own event name takes precedence over an attribute event_name.
func (w *logWalker) attributes(p, end int, named bool) error {
	d := w.decoded
	for p < end {
		n, kind, next, _ := wire.Field(d, p, end)
		if n != 6 {
			p, _ = wire.Skip(d, next, end, kind)
			continue
		}
		begin, stop, _ := wire.Body(d, next, end)
		key, v, err := keyValue(d, begin, stop)
		if err != nil {
			return err
		}
		if !named || string(key) != "event_name" {
			if err := w.line.attribute(&w.entries.Meta, nil, key, v, 0); err != nil {
				return err
			}
		}
		p = stop
	}
	return nil
}

// readRecord parses a LogRecord message without its attributes.
func readRecord(d []byte, p, end int) (r record, err error) {
	for p < end {
		n, kind, next, err := wire.Field(d, p, end)
		if err != nil {
			return r, err
		}
		switch n {
		case 1:
			r.time, p, err = wire.Fixed64("log record's time", d, kind, next, end)
		case 11:
			r.observed, p, err = wire.Fixed64("log record's observed time", d, kind, next, end)
		case 2:
			r.severity, p, err = wire.Number("severity number", d, kind, next, end)
		case 7:
			r.dropped, p, err = wire.Number("count of dropped attributes", d, kind, next, end)
		case 8:
			r.flags, p, err = wire.Fixed32("log record's flags", d, kind, next, end)
		case 3, 5, 6, 9, 10, 12:
			p, err = r.bytesField(d, n, kind, next, end)
		default:
			p, err = wire.Skip(d, next, end, kind)
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// bytesField parses a length-delimited field of a LogRecord.
func (r *record) bytesField(d []byte, number int32, kind protowire.Type, p, end int) (next int, err error) {
	begin, stop, err := wire.Message("a part of a log record", d, kind, p, end)
	if err != nil {
		return 0, err
	}
	b := d[begin:stop:stop]
	switch number {
	case 3:
		r.severityText = b
	case 5:
		r.body, err = readValue(d, begin, stop)
	case 9:
		if len(b) != 0 && len(b) != 16 {
			return 0, &wire.Malformed{What: "a trace ID that is not 16 bytes long", At: begin}
		}
		r.traceID = b
	case 10:
		if len(b) != 0 && len(b) != 8 {
			return 0, &wire.Malformed{What: "a span ID that is not 8 bytes long", At: begin}
		}
		r.spanID = b
	case 12:
		r.eventName = b
	}
	return stop, err
}
