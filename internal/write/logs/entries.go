package logs

import (
	"encoding/binary"
	"fmt"
	"net/http"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// The memory, in bytes, that entries take beside those of their lines and metadata, and the steps in which it is reserved.
const (
	rowBytes    = 8 + 8 + 1
	streamBytes = model.KeyBytes + 4 + 4 + 8
	reserveStep = 256 << 10
	// maxTextBytes is how many bytes of lines a batch may have: offsets have 32 bits.
	maxTextBytes = 1<<31 - 1
)

// Entries puts the lines of one request into a batch, of which it is the [model.LabelSource] until the push has returned.
// For each stream, Begin, then for each of its lines Meta.Reset, Meta.Add and Add, then End.
type Entries struct {
	// Meta is the structured metadata of the line that is added next.
	Meta Metadata
	// Left is what cannot be stored.
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

// Start readies it for a request.
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

// Forget lets go of the request, so that it can be pooled.
func (e *Entries) Forget() {
	clear(e.streams)
	clear(e.Meta.pairs)
	e.batch, e.reserve, e.Left, e.stream, e.Meta.bad = nil, nil, nil, nil, nil
	e.streams = e.streams[:0]
}

// Memory is the size of what it keeps between requests, in bytes.
func (e *Entries) Memory() int {
	return cap(e.streams)*8 + cap(e.Meta.pairs)*72 + cap(e.Meta.arena)
}

// Begin begins a stream.
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
	return e.room()
}

// Add adds a line of the stream, with the metadata that Meta has, or leaves it out and says why. Time is in Unix
// nanoseconds. Its error ends the request.
func (e *Entries) Add(t int64, line []byte) error {
	if reason, why := e.check(line); reason != "" {
		e.LeaveOut(reason, line, why)
		return nil
	}
	rows := &e.batch.Text
	begin := len(rows.Bytes)
	rows.Bytes = binary.AppendUvarint(rows.Bytes, uint64(len(line)))
	rows.Bytes = append(rows.Bytes, line...)
	e.appendMetadata(line)
	rows.EndBlob(t, model.KindText, begin, 0)
	if len(rows.Times)&0xff == 0 || len(rows.Bytes)-begin > reserveStep/4 {
		return e.room()
	}
	return nil
}

// LeaveOut counts a line that cannot be stored; why is called for the first few.
func (e *Entries) LeaveOut(reason string, line []byte, why func() string) {
	e.Left.Add(reason, write.Counts{Lines: 1, LineBytes: int64(len(line))}, why)
}

// check returns the reason for which a line cannot be stored, or "".
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
	case m.bytes > least(r.MaxMetadataBytes, mostMetadataBytes):
		return write.ReasonMetadataLong, func() string {
			return fmt.Sprintf("stream '%s' has structured metadata too large: '%d' bytes, limit: '%d' bytes", write.DescribeStream(s.Labels), m.bytes, least(r.MaxMetadataBytes, mostMetadataBytes))
		}
	case m.entries > least(r.MaxMetadataEntries, mostMetadataEntries):
		return write.ReasonMetadataMany, func() string {
			return fmt.Sprintf("stream '%s' has too many structured metadata labels: '%d', limit: '%d'", write.DescribeStream(s.Labels), m.entries, least(r.MaxMetadataEntries, mostMetadataEntries))
		}
	case m.badErr != nil:
		return write.ReasonMetadata, func() string {
			return fmt.Sprintf("stream '%s' has structured metadata with an invalid name '%s': %v", write.DescribeStream(s.Labels), cut(m.bad), m.badErr)
		}
	}
	return "", nil
}

// least returns the lower of two limits, of which the first may be none.
func least(a, b int) int {
	if a <= 0 {
		return b
	}
	return min(a, b)
}

// appendMetadata appends the metadata of the line to the batch, with its level.
func (e *Entries) appendMetadata(line []byte) {
	rows, m := &e.batch.Text, &e.Meta
	if e.rules.DetectLevels {
		l := e.level(line)
		if m.empty() {
			rows.Bytes = append(rows.Bytes, l.label...)
			return
		}
		if len(l.value) > 0 {
			m.add(detectedLevelName, l.value)
		}
	}
	if !m.empty() {
		rows.Bytes = m.appendTo(rows.Bytes)
	}
}

// detectedLevelName is not to be made anew for each line.
var detectedLevelName = []byte(detectedLevel)

// level returns the level that is to be added to the line's metadata, if one is.
func (e *Entries) level(line []byte) levelLabel {
	m := &e.Meta
	if !m.empty() {
		if v := m.find(detectedLevel); v != nil {
			if l := levelOf(v); l != none {
				return e.levels[l] // the last one counts
			}
			return levelLabel{}
		}
	}
	if e.stream.level.value != nil {
		return e.stream.level
	}
	if !m.empty() {
		if v, ok := m.level(); ok {
			if l := levelOf(v); l != none {
				return e.levels[l]
			}
			return levelLabel{value: v}
		}
		if v := m.find("severity_number"); len(v) > 0 {
			return e.levels[severity(v)]
		}
	}
	return e.levels[lineLevel(line)]
}

// room reserves memory for what a walk builds ahead of its use.
func (e *Entries) room() error {
	rows := &e.batch.Text
	used := int64(len(rows.Bytes)) + int64(rows.Len())*rowBytes + int64(len(e.streams))*streamBytes
	if used <= e.reserved {
		return nil
	}
	if len(rows.Bytes) > maxTextBytes {
		return &write.Refused{
			Status: http.StatusRequestEntityTooLarge, Limit: "limits.decoded-bytes",
			Text: fmt.Sprintf("the lines of the request, as they are stored, have more than %d bytes; send fewer lines per request", maxTextBytes),
		}
	}
	step := max(used-e.reserved, reserveStep)
	if err := e.reserve(step); err != nil {
		return err
	}
	e.reserved += step
	return nil
}

// Reserve asks for memory on behalf of the write path.
func (e *Entries) Reserve(bytes int64) error { return e.reserve(bytes) }

// CanonicalLabels returns the labels of stream i.
func (e *Entries) CanonicalLabels(i int) model.Labels { return e.streams[i].Labels }

// BuildLabels adds the labels of stream i.
func (e *Entries) BuildLabels(i int, b *model.LabelsBuilder) {
	for n, v, rest, ok := e.streams[i].Labels.Next(); ok; n, v, rest, ok = rest.Next() {
		b.Add(n, v)
	}
}
