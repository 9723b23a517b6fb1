package logs

import (
	"encoding/binary"
	"fmt"
	"net/http"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// Memory in bytes that entries need besides their lines and metadata, and the step in which it is
// reserved.
const (
	rowBytes    = 8 + 8 + 1
	streamBytes = model.KeyBytes + 4 + 4 + 8
	reserveStep = 256 << 10
	// maxTextBytes bounds the lines of a batch, because offsets have 32 bits.
	maxTextBytes = 1<<31 - 1
)

// Entries puts the lines of one request into a batch. It is the batch's [model.LabelSource] until the
// push has returned. For each stream, the caller calls Begin, then for each line Meta.Reset, Meta.Add
// and Add, and then End.
type Entries struct {
	// Meta is the structured metadata of the next line.
	Meta Metadata
	// Left has the lines that cannot be stored.
	Left write.Rejections

	rules    *Rules
	batch    *model.Batch
	stream   *Stream
	streams  []*Stream
	reserve  func(bytes int64) error
	reserved int64
	levels   [levels]levelLabel
}

var (
	_ write.Reserver        = (*Entries)(nil)
	_ write.CanonicalSource = (*Entries)(nil)
)

// Start prepares e for a request.
func (e *Entries) Start(rules *Rules, b *model.Batch, reserve func(bytes int64) error) {
	if e.levels[levelUnknown].value == nil {
		for l := levelUnknown; l < levels; l++ {
			e.levels[l] = newLevelLabel([]byte(l.String()))
		}
	}
	e.rules, e.batch, e.reserve, e.reserved = rules, b, reserve, 0
	e.streams, e.Left = e.streams[:0], nil
	b.Source = e
}

// Forget drops all references to the request, so that e can be pooled.
func (e *Entries) Forget() {
	clear(e.streams)
	clear(e.Meta.pairs)
	e.batch, e.reserve, e.Left, e.stream, e.Meta.bad = nil, nil, nil, nil, nil
	e.streams = e.streams[:0]
}

// Memory returns the bytes that e keeps between requests.
func (e *Entries) Memory() int {
	return cap(e.streams)*8 + cap(e.Meta.pairs)*72 + cap(e.Meta.arena)
}

// Begin starts a stream.
func (e *Entries) Begin(s *Stream) { e.stream = s }

// End ends the stream.
func (e *Entries) End() error {
	b := e.batch
	begin := 0
	if n := len(b.Text.Ends); n > 0 {
		begin = int(b.Text.Ends[n-1])
	}
	if b.Text.Len() == begin {
		return nil
	}
	b.EndSeries(e.stream.Key)
	e.streams = append(e.streams, e.stream)
	return e.reserveRows()
}

// Add adds a line with the metadata in Meta to the stream, or rejects it. Time t is in Unix
// nanoseconds. An error ends the request.
func (e *Entries) Add(t int64, line []byte) error {
	if reason, why := e.check(line); reason != "" {
		e.LeaveOut(reason, line, why)
		return nil
	}
	rows := &e.batch.Text
	begin := len(rows.Bytes)
	rows.Bytes = binary.AppendUvarint(rows.Bytes, uint64(len(line)))
	rows.Bytes = append(rows.Bytes, line...)
	rows.Bytes = e.AppendMetadata(rows.Bytes, line)
	rows.EndBlob(t, model.KindText, begin, 0)
	if len(rows.Times)&0xff == 0 || len(rows.Bytes)-begin > reserveStep/4 {
		return e.reserveRows()
	}
	return nil
}

// LeaveOut counts a rejected line. It calls why for the first few only.
func (e *Entries) LeaveOut(reason string, line []byte, why func() string) {
	e.Left.AddAt(e.batch.Text.Len(), reason, write.Counts{Lines: 1, LineBytes: int64(len(line))}, why)
}

// check returns the reason why the line cannot be stored, or "".
func (e *Entries) check(line []byte) (reason string, why func() string) {
	r, m, s := e.rules, &e.Meta, e.stream
	switch {
	case s.Reason != "":
		return s.Reason, func() string { return s.Why }
	case r.MaxLineBytes > 0 && len(line) > r.MaxLineBytes:
		return write.ReasonLineTooLong, func() string {
			return fmt.Sprintf("max entry size '%d' bytes exceeded for stream '%s' while adding an entry with length '%d' bytes", r.MaxLineBytes, write.DescribeStream(s.Labels), len(line))
		}
	case m.entries == 0:
		return "", nil
	case m.bytes > lowerLimit(r.MaxMetadataBytes, mostMetadataBytes):
		return write.ReasonMetadataLong, func() string {
			return fmt.Sprintf("stream '%s' has structured metadata too large: '%d' bytes, limit: '%d' bytes", write.DescribeStream(s.Labels), m.bytes, lowerLimit(r.MaxMetadataBytes, mostMetadataBytes))
		}
	case m.entries > lowerLimit(r.MaxMetadataEntries, mostMetadataEntries):
		return write.ReasonMetadataMany, func() string {
			return fmt.Sprintf("stream '%s' has too many structured metadata labels: '%d', limit: '%d'", write.DescribeStream(s.Labels), m.entries, lowerLimit(r.MaxMetadataEntries, mostMetadataEntries))
		}
	case m.badErr != nil:
		return write.ReasonMetadata, func() string {
			return fmt.Sprintf("stream '%s' has structured metadata with an invalid name '%s': %v", write.DescribeStream(s.Labels), cut(m.bad), m.badErr)
		}
	}
	return "", nil
}

// lowerLimit returns the lower of two limits. The first may be 0, which means no limit.
func lowerLimit(a, b int) int {
	if a <= 0 {
		return b
	}
	return min(a, b)
}

// AppendMetadata appends what is in Meta in canonical form, with the level of a line of the stream that has
// begun.
func (e *Entries) AppendMetadata(dst, line []byte) []byte {
	m := &e.Meta
	if e.rules.DetectLevels {
		l := e.level(line)
		if m.empty() {
			return append(dst, l.label...)
		}
		if len(l.value) > 0 {
			m.add(detectedLevelName, l.value)
		}
	}
	if m.empty() {
		return dst
	}
	return m.appendTo(dst)
}

// detectedLevelName is a variable so that it is not allocated for each line.
var detectedLevelName = []byte(detectedLevel)

// level returns the level to add to the line's metadata. Its value is empty if the metadata has a
// detected_level already.
func (e *Entries) level(line []byte) levelLabel {
	m := &e.Meta
	if !m.empty() {
		if v := m.find(detectedLevel); v != nil {
			if l := parseLevel(v); l != none {
				return e.levels[l] // appendTo keeps the last of equal names
			}
			return levelLabel{}
		}
	}
	if e.stream.level.value != nil {
		return e.stream.level
	}
	if !m.empty() {
		if v := m.level(); v != nil {
			if l := parseLevel(v); l != none {
				return e.levels[l]
			}
			return levelLabel{value: v}
		}
		if v := m.find("severity_number"); v != nil {
			return e.levels[severity(v)]
		}
	}
	return e.levels[lineLevel(line)]
}

// reserveRows reserves memory for the rows and streams that have been added.
func (e *Entries) reserveRows() error {
	rows := &e.batch.Text
	used := int64(len(rows.Bytes)) + int64(rows.Len())*rowBytes + int64(len(e.streams))*streamBytes
	if used <= e.reserved {
		return nil
	}
	if len(rows.Bytes) > maxTextBytes {
		return &write.Refused{
			Status: http.StatusRequestEntityTooLarge, Limit: "limits.decoded-bytes",
			Text: fmt.Sprintf("the lines of the request exceed %d bytes as stored; send fewer lines per request", maxTextBytes),
		}
	}
	step := max(used-e.reserved, reserveStep)
	if err := e.reserve(step); err != nil {
		return err
	}
	e.reserved += step
	return nil
}

// Reserve reserves memory for the write path.
func (e *Entries) Reserve(bytes int64) error { return e.reserve(bytes) }

// CanonicalLabels returns the labels of stream i.
func (e *Entries) CanonicalLabels(i int) model.Labels { return e.streams[i].Labels }

// BuildLabels adds the labels of stream i.
func (e *Entries) BuildLabels(i int, b *model.LabelsBuilder) {
	for n, v, rest, ok := e.streams[i].Labels.Next(); ok; n, v, rest, ok = rest.Next() {
		b.Add(n, v)
	}
}
