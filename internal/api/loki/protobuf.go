package loki

import (
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/logql/fields"
	"github.com/shaledb/shale/internal/read/logql/vector"
)

// protobufType is what a client accepts that wants a response as Loki's message QueryResponse. Loki's own
// components speak it. As in Loki, the header must name nothing else.
const protobufType = "application/vnd.google.protobuf"

func wantsProtobuf(r *api.Request) bool { return r.Header.Get("Accept") == protobufType }

// Fields of the message QueryResponse: one for each kind of response.
const (
	fieldStatus protowire.Number = 1
	fieldSeries protowire.Number = 2
	fieldLabels protowire.Number = 3
	fieldStats  protowire.Number = 4
	fieldProm   protowire.Number = 5
	fieldLines  protowire.Number = 6

	fieldDetectedFields protowire.Number = 11
	fieldDetectedLabels protowire.Number = 13
)

// versionV1 is the number of Loki's API without its legacy paths.
const versionV1 = 1

// message is a protobuf message that is being built. Like Loki's, it leaves out fields with zero values.
type message []byte

func (m *message) bytes(field protowire.Number, b []byte) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), b)
}

func (m *message) text(field protowire.Number, s string) {
	if s != "" {
		*m = protowire.AppendString(protowire.AppendTag(*m, field, protowire.BytesType), s)
	}
}

func (m *message) number(field protowire.Number, n int64) {
	if n != 0 {
		*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), uint64(n))
	}
}

func (m *message) double(field protowire.Number, v float64) {
	if v != 0 { // NaN is not 0, and -0 is
		*m = protowire.AppendFixed64(protowire.AppendTag(*m, field, protowire.Fixed64Type), math.Float64bits(v))
	}
}

// labels adds each label as a message of its name and its value.
func (m *message) labels(field protowire.Number, l model.Labels) {
	var pair message
	for name, value, rest, ok := l.Next(); ok; name, value, rest, ok = rest.Next() {
		pair = pair[:0]
		if len(name) > 0 {
			pair.bytes(1, name)
		}
		if len(value) > 0 {
			pair.bytes(2, value)
		}
		m.bytes(field, pair)
	}
}

// tagBytes is the most that the tag and the length of a field take.
const tagBytes = 1 + 10

// newMessage returns an empty message with room for that many bytes, which are charged to the quota of the
// request until it ends.
func newMessage(r *api.Request, size int) (message, error) {
	if err := r.Quota.TakeBytes(int64(size)); err != nil {
		return nil, err
	}
	return make(message, 0, size), nil
}

// begin adds the beginning of a message of that length.
func (m *message) begin(field protowire.Number, length int) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.BytesType), uint64(length))
}

// sendProtobuf responds with a message whose field holds the response, in parts that follow each other. The
// status before it is empty: there is no error.
func sendProtobuf(field protowire.Number, parts ...message) *api.Response {
	length := 0
	for _, p := range parts {
		length += len(p)
	}
	var begin message
	begin.bytes(fieldStatus, nil)
	begin.begin(field, length)
	res := response(func(b *api.Body) {
		b.Buf = append(b.Buf, begin...)
		for _, p := range parts {
			for len(p) > 0 {
				n := min(len(p), api.FlushBytes)
				b.Buf = append(b.Buf, p[:n]...)
				p = p[n:]
				b.Spill()
			}
		}
	})
	res.ContentType = protobufType
	return res
}

// protobufNumbers builds a result of numbers: a LokiPromResponse.
func protobufNumbers(r *api.Request, n *numbers, f *figures) (*api.Response, error) {
	const sampleBytes = tagBytes + 9 + 11 // a double and a time, with their tags
	var kind message
	kind.text(1, kindNames[n.kind])
	data := []message{nil, kind}
	length := len(kind)
	for i := range n.series {
		s := &n.series[i]
		series, err := newMessage(r, len(s.Labels)+sampleBytes*s.Present.Len())
		if err != nil {
			return nil, err
		}
		series.labels(1, s.Labels)
		series.samples(2, n, s)
		length += appendPart(&data, 2, series)
	}
	// The result of a large query is not copied into the messages around it.
	var prom, begin, end message
	prom.text(1, "success")
	prom.begin(2, length)
	for _, w := range append(n.warnings, r.Cost.Warnings.All()...) {
		end.text(6, w)
	}
	begin.begin(1, len(prom)+length+len(end))
	end.bytes(2, f.protobuf())
	data[0] = append(begin, prom...)
	return sendProtobuf(fieldProm, append(data, end)...), nil
}

// appendPart appends a field that holds a message, and returns the length of both.
func appendPart(parts *[]message, field protowire.Number, m message) int {
	var begin message
	begin.begin(field, len(m))
	*parts = append(*parts, begin, m)
	return len(begin) + len(m)
}

func (m *message) samples(field protowire.Number, n *numbers, s *vector.Series) {
	var sample message
	for i, t := range n.times {
		if s.Present.Has(i) {
			sample = sample[:0]
			sample.double(1, s.Values[i])
			sample.number(2, t)
			m.bytes(field, sample)
		}
	}
}

// protobufLines builds a result of lines: a LokiResponse.
func protobufLines(r *api.Request, got *logql.Lines, w *window, categorize bool, f *figures) (*api.Response, error) {
	var kind message
	kind.text(1, "streams")
	data := []message{nil, kind}
	length := len(kind)
	for i := range got.Streams {
		labels := got.Streams[i].Labels.String()
		size := tagBytes + len(labels)
		for j := range got.Streams[i].Entries {
			size += entryBytes(&got.Streams[i].Entries[j], categorize)
		}
		stream, err := newMessage(r, size)
		if err != nil {
			return nil, err
		}
		stream.text(1, labels)
		for j := range got.Streams[i].Entries {
			stream.entry(2, &got.Streams[i].Entries[j], categorize)
		}
		length += appendPart(&data, 2, stream)
	}
	var begin, end message
	begin.text(1, "success")
	begin.begin(2, length)
	if w.direction == logql.Backward {
		end.number(5, 1)
	}
	end.number(6, int64(w.limit))
	if !isLegacy(r) {
		end.number(7, versionV1)
	}
	end.bytes(8, f.protobuf())
	for _, text := range r.Cost.Warnings.All() {
		end.text(10, text)
	}
	data[0] = begin
	return sendProtobuf(fieldLines, append(data, end)...), nil
}

// entryBytes is the most that an entry takes.
func entryBytes(e *logql.Entry, categorize bool) int {
	n := 5*tagBytes + len(e.Line) // the entry, its time of two numbers, and its line
	if categorize {
		n += len(e.Metadata) + len(e.Parsed) // messages of a name and a value, too
	}
	return n
}

func (m *message) entry(field protowire.Number, e *logql.Entry, categorize bool) {
	var t, entry message
	seconds := e.Time / int64(time.Second)
	if e.Time%int64(time.Second) < 0 {
		seconds--
	}
	t.number(1, seconds)
	t.number(2, e.Time-seconds*int64(time.Second))
	entry.bytes(1, t)
	if len(e.Line) > 0 {
		entry.bytes(2, e.Line)
	}
	if categorize {
		entry.labels(3, e.Metadata)
		entry.labels(4, e.Parsed)
	}
	m.bytes(field, entry)
}

// protobufTexts builds a list of names or values: a LokiLabelNamesResponse.
func protobufTexts(r *api.Request, all []string) (*api.Response, error) {
	size := 3 * tagBytes
	for _, s := range all {
		size += tagBytes + len(s)
	}
	m, err := newMessage(r, size)
	if err != nil {
		return nil, err
	}
	m.text(1, "success")
	for _, s := range all {
		m.bytes(2, []byte(s))
	}
	if !isLegacy(r) {
		m.number(3, versionV1)
	}
	return sendProtobuf(fieldLabels, m), nil
}

// protobufSeries builds a list of label sets: a LokiSeriesResponse.
func protobufSeries(r *api.Request, all []model.Labels) (*api.Response, error) {
	size := 3 * tagBytes
	for _, l := range all {
		size += tagBytes + len(l)
	}
	m, err := newMessage(r, size)
	if err != nil {
		return nil, err
	}
	var series message
	m.text(1, "success")
	for _, l := range all {
		series = series[:0]
		series.labels(1, l)
		m.bytes(2, series)
	}
	if !isLegacy(r) {
		m.number(3, versionV1)
	}
	return sendProtobuf(fieldSeries, m), nil
}

// protobufStats builds counts: an IndexStatsResponse.
func protobufStats(counts []member) *api.Response {
	var stats, m message
	for i, c := range counts {
		stats.number(protowire.Number(i+1), c.value)
	}
	m.bytes(1, stats)
	return sendProtobuf(fieldStats, m)
}

// protobufFields builds a list of fields, or of the values of one: a DetectedFieldsResponse.
func protobufFields(found []fields.Field, values []string, limit int) *api.Response {
	var field, all, m message
	for i := range found {
		f := &found[i]
		field = field[:0]
		field.text(1, f.Name)
		field.text(2, string(f.Type))
		field.number(3, int64(f.Cardinality))
		for _, p := range f.Parsers {
			field.text(4, p)
		}
		for _, p := range f.JSONPath {
			field.text(6, p)
		}
		all.bytes(1, field)
	}
	if len(found)+len(values) > 0 {
		all.number(2, int64(limit))
	}
	for _, v := range values {
		all.bytes(3, []byte(v))
	}
	m.bytes(1, all)
	return sendProtobuf(fieldDetectedFields, m)
}

// protobufDetectedLabels builds a list of labels: a DetectedLabelsResponse.
func protobufDetectedLabels(found []logql.DetectedLabel) *api.Response {
	var label, all, m message
	for _, l := range found {
		label = label[:0]
		label.text(1, l.Name)
		label.number(2, int64(l.Cardinality))
		all.bytes(1, label)
	}
	m.bytes(1, all)
	return sendProtobuf(fieldDetectedLabels, m)
}
