package logs

import (
	"encoding/binary"
	"fmt"
	"net/http"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// Memory in bytes that entries need besides their lines and metadata: of a row, and of a series with its end
// and the pointer to its stream.
const (
	rowBytes    = 8 + 8 + 1
	seriesBytes = model.KeyBytes + 4 + 8
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

	rules   *Rules
	batch   *model.Batch
	stream  *Stream
	streams []*Stream
	reserve func(bytes int64) error
	room    write.Room
	// body is the size of the decoded body.
	body int
	// held are the bytes of the streams of the request. labels and text are the most that was needed to parse
	// the labels of one stream and to hold the text of one line. counted is the sum that is reserved.
	held, labels, text, counted int64
	levels                      [levels]levelLabel
}

var (
	_ write.Reserver        = (*Entries)(nil)
	_ write.CanonicalSource = (*Entries)(nil)
)

// Start prepares e for a request with a decoded body of that many bytes.
func (e *Entries) Start(rules *Rules, b *model.Batch, body int, reserve func(bytes int64) error) {
	if e.levels[levelUnknown].value == nil {
		for l := levelUnknown; l < levels; l++ {
			e.levels[l] = newLevelLabel([]byte(l.String()))
		}
	}
	e.rules, e.batch, e.reserve, e.body = rules, b, reserve, body
	e.held, e.labels, e.text, e.counted = 0, 0, 0, 0
	e.room.Start(b, seriesBytes, rowBytes, reserve)
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
	if err := e.room.MoreSeries(e.other()); err != nil {
		return err
	}
	b.EndSeries(e.stream.Key)
	e.streams = append(model.Sized(e.streams, cap(b.Keys)), e.stream)
	if e.held += e.stream.bytes(); len(b.Keys)&0xff == 0 || e.other()-e.counted > uncounted {
		return e.reserveRows()
	}
	return nil
}

// uncounted is how many bytes of streams, labels and text may wait to be reserved together with others.
const uncounted = 64 << 10

// other returns the bytes that count besides those of the batch.
func (e *Entries) other() int64 { return e.held + e.labels + e.text }

// Memory for parsing labels, in the worst of all forms: of a byte of an object of JSON, whose values have
// escapes, and of a label.
const (
	labelsBytes = 8
	labelBytes  = 640
)

// ExpectLabels reserves memory for parsing at most n labels that are spelled in so many bytes.
func (e *Entries) ExpectLabels(bytes, n int) error {
	if bytes > model.MaxLabelBytes {
		return nil // they are not parsed
	}
	e.labels = max(e.labels, labelsBytes*int64(bytes)+labelBytes*int64(n))
	return e.reserveOther()
}

// ExpectText reserves memory for the text of one line that is not in the body as it is.
func (e *Entries) ExpectText(bytes int) error {
	e.text = max(e.text, int64(bytes))
	return e.reserveOther()
}

func (e *Entries) reserveOther() error {
	if e.other()-e.counted > uncounted {
		return e.reserveRows()
	}
	return nil
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
	most := binary.MaxVarintLen32 + len(line) + e.Meta.mostBytes(max(len(e.stream.level.value), len("critical")))
	if len(rows.Times) == cap(rows.Times) || begin+most > cap(rows.Bytes) {
		if err := e.roomFor(most); err != nil {
			return err
		}
	}
	rows.Bytes = binary.AppendUvarint(rows.Bytes, uint64(len(line)))
	rows.Bytes = append(rows.Bytes, line...)
	rows.Bytes = e.AppendMetadata(rows.Bytes, line)
	rows.EndBlob(t, model.KindText, begin, 0)
	if len(rows.Times)&0xff == 0 || write.CrossesStep(begin, len(rows.Bytes)) {
		return e.reserveRows()
	}
	return nil
}

// roomFor makes room for a line that takes so many bytes with its metadata, but never for more than
// maxTextBytes. The lines of a request rarely take more than its body.
func (e *Entries) roomFor(bytes int) error {
	rows := &e.batch.Text
	if len(rows.Bytes)+bytes > maxTextBytes {
		return &write.Refused{
			Status: http.StatusRequestEntityTooLarge, Limit: "limits.decoded-bytes",
			Text: fmt.Sprintf("the lines of the request exceed %d bytes as stored; send fewer lines per request", maxTextBytes),
		}
	}
	if err := e.room.MoreRows(model.Text, 1, e.other()); err != nil {
		return err
	}
	return e.room.Blob(model.Text, bytes, min(max(e.body, 2*len(rows.Bytes)), maxTextBytes), e.other())
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
	e.counted = e.other()
	return e.room.Reserve(e.room.Used() + e.counted)
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
