package line

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/shaledb/shale/internal/model"
)

// Names of labels with a meaning of their own.
const (
	// ErrorLabel says of which kind the first thing is that went wrong with a line, ErrorDetailsLabel what it
	// was.
	ErrorLabel        = "__error__"
	ErrorDetailsLabel = "__error_details__"

	preserveErrorLabel = "__preserve_error__"
	extractedSuffix    = "_extracted"
)

// The kinds of errors that a line can have.
const (
	errJSON             = "JSONParserErr"
	errLogfmt           = "LogfmtParserErr"
	errSampleExtraction = "SampleExtractionErr"
	errLabelFilter      = "LabelFilterErr"
	errTemplateFormat   = "TemplateFormatErr"
)

// category says where a label of the result comes from.
type category uint8

const (
	ofStream category = iota
	ofMetadata
	ofParsed
)

// label is one label of a line. Its strings may lie in the line, in the metadata or in the memory of the
// labels: they are valid until the next line.
type label struct {
	name, value string
	category    category
}

// labels are those of one line on its way through the stages: those of its stream, which stay, with what was
// added and deleted on top. Parsed labels win over structured metadata, and both over the stream.
type labels struct {
	stream    []label // sorted by name
	streamRaw model.Labels

	added   []label
	place   map[string]int // of the names in added, once there are many
	deleted []string
	// parsedOnce are names of parsed labels that were deleted: a parser does not set them again.
	parsedOnce  []string
	touched     bool // something was deleted, or would have been added if it were wanted
	addedBytes  int
	metadata    model.Labels // of the line, as it came
	metadataRaw bool         // added holds exactly the metadata, under their own names

	// undo is what labels were before they were set since mark was called.
	undo    []undone
	undoing bool

	err, details string
	preserve     bool // a failed parser says that the query asks for such lines

	names    names
	arena    []byte
	sorted   []label
	overflow bool
}

// undone is a label that was set over another one, or added after the others (place < 0).
type undone struct {
	place int
	label label
}

// manyLabels is from how many labels on they are found by a map: below, looking at each is faster.
const manyLabels = 24

func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// setStream says of which stream the next lines are.
func (l *labels) setStream(raw model.Labels) {
	l.streamRaw, l.stream = raw, l.stream[:0]
	for n, v, rest, ok := raw.Next(); ok; n, v, rest, ok = rest.Next() {
		l.stream = append(l.stream, label{text(n), text(v), ofStream})
	}
}

// reset begins a line.
func (l *labels) reset(metadata model.Labels) {
	if len(l.added) > manyLabels {
		clear(l.place)
	}
	l.added, l.deleted, l.parsedOnce, l.arena = l.added[:0], l.deleted[:0], l.parsedOnce[:0], l.arena[:0]
	l.touched, l.err, l.details, l.addedBytes, l.overflow, l.undoing = false, "", "", 0, false, false
	l.metadata, l.metadataRaw = metadata, true
	for n, v, rest, ok := metadata.Next(); ok; n, v, rest, ok = rest.Next() {
		name := text(n)
		if l.streamHas(name) {
			name, l.metadataRaw = l.extracted(name), false
		}
		switch name {
		case ErrorLabel:
			l.err, l.metadataRaw = text(v), false
		case ErrorDetailsLabel:
			l.details, l.metadataRaw = text(v), false
		default:
			l.set(ofMetadata, name, text(v))
		}
	}
}

// streamHas reports whether the stream has a label, deleted or not.
func (l *labels) streamHas(name string) bool {
	for i := range l.stream {
		if l.stream[i].name == name {
			return true
		}
	}
	return false
}

// find returns the place of an added label, or -1.
func (l *labels) find(name string) int {
	if len(l.added) <= manyLabels {
		for i := range l.added {
			if l.added[i].name == name {
				return i
			}
		}
		return -1
	}
	if i, ok := l.place[name]; ok {
		return i
	}
	return -1
}

// get returns the value of a label and whether it is there. It does not know the labels of errors.
func (l *labels) get(name string) (string, bool) {
	if i := l.find(name); i >= 0 {
		return l.added[i].value, true
	}
	if slices.Contains(l.deleted, name) {
		return "", false
	}
	for i := range l.stream {
		if l.stream[i].name == name {
			return l.stream[i].value, true
		}
	}
	return "", false
}

// taken reports whether a parsed label must give way to the stream or the metadata and be called otherwise.
func (l *labels) taken(name string) bool {
	if l.streamHas(name) {
		return true
	}
	i := l.find(name)
	return i >= 0 && l.added[i].category == ofMetadata
}

// wasParsed reports whether a stage has already set the label: parsers leave it alone then.
func (l *labels) wasParsed(name string) bool {
	if i := l.find(name); i >= 0 && l.added[i].category == ofParsed {
		return true
	}
	return len(l.parsedOnce) > 0 && slices.Contains(l.parsedOnce, name)
}

// set sets a label; a parsed one takes the place of metadata. The strings must stay unchanged until the next
// line.
func (l *labels) set(c category, name, value string) {
	if i := l.find(name); i >= 0 {
		if l.undoing {
			l.undo = append(l.undo, undone{i, l.added[i]})
		}
		l.addedBytes += len(value) - len(l.added[i].value)
		l.added[i].value, l.added[i].category = value, max(c, l.added[i].category)
		return
	}
	if l.addedBytes += len(name) + len(value); len(l.added) >= MaxLabels || l.addedBytes > MaxLabelBytes {
		l.overflow = true
		return
	}
	l.added = append(l.added, label{name, value, c})
	if l.undoing {
		l.undo = append(l.undo, undone{place: -1})
	}
	switch {
	case len(l.added) == manyLabels+1:
		if l.place == nil {
			l.place = make(map[string]int, 4*manyLabels)
		}
		for i := range l.added {
			l.place[l.added[i].name] = i
		}
	case len(l.added) > manyLabels:
		l.place[name] = len(l.added) - 1
	}
}

// setParsed sets a label that a stage has found or made.
func (l *labels) setParsed(name, value string) {
	l.metadataRaw = false
	l.set(ofParsed, name, value)
}

// del deletes a label of whatever category.
func (l *labels) del(name string) {
	l.touched, l.metadataRaw = true, false
	if i := l.find(name); i >= 0 {
		if l.added[i].category == ofParsed {
			l.parsedOnce = append(l.parsedOnce, name)
		}
		l.remove(i)
	}
	l.deleted = append(l.deleted, name)
}

func (l *labels) remove(i int) {
	last := len(l.added) - 1
	l.addedBytes -= len(l.added[i].name) + len(l.added[i].value)
	switch {
	case last > manyLabels:
		delete(l.place, l.added[i].name)
		if i != last {
			l.place[l.added[last].name] = i
		}
	case last == manyLabels:
		clear(l.place)
	}
	l.added[i] = l.added[last]
	l.added = l.added[:last]
}

// mark begins a stretch in which labels are only set, and that rewind takes back.
func (l *labels) mark() { l.undo, l.undoing = l.undo[:0], true }

func (l *labels) rewind() {
	for i := len(l.undo) - 1; i >= 0; i-- {
		u := l.undo[i]
		if u.place < 0 {
			l.remove(len(l.added) - 1)
			continue
		}
		l.addedBytes += len(u.label.value) - len(l.added[u.place].value)
		l.added[u.place] = u.label
	}
	l.undoing = false
}

// fail notes an error. The details of an earlier one stay where there are no new ones.
func (l *labels) fail(kind, details string) {
	l.metadataRaw = false
	l.err = kind
	if details != "" {
		l.details = details
	}
	if l.preserve && (kind == errJSON || kind == errLogfmt) {
		l.set(ofParsed, preserveErrorLabel, "true")
	}
}

// asItCame reports whether the result's labels are those of the stream alone. The details of an error that
// was dropped are dropped with it here, and only here.
func (l *labels) asItCame() bool { return !l.touched && len(l.added) == 0 && l.err == "" }

// extracted is the name that a parsed label gets whose own name is taken.
func (l *labels) extracted(name string) string {
	at := len(l.arena)
	l.arena = append(append(l.arena, name...), extractedSuffix...)
	s, own := l.names.intern(text(l.arena[at:]))
	if own {
		l.arena = l.arena[:at]
	}
	return s
}

// keep copies a value that will be overwritten before the line is done.
func (l *labels) keep(v []byte) string {
	at := len(l.arena)
	l.arena = append(l.arena, v...)
	return text(l.arena[at:len(l.arena):len(l.arena)])
}

// hidden reports whether a label of the stream is not part of the result.
func (l *labels) hidden(name string) bool {
	return slices.Contains(l.deleted, name) || l.find(name) >= 0
}

// all appends all labels of the line as they are now, errors included, in no order.
func (l *labels) all(dst []label) []label {
	if l.asItCame() {
		return append(dst, l.stream...)
	}
	for i := range l.stream {
		if !l.hidden(l.stream[i].name) {
			dst = append(dst, l.stream[i])
		}
	}
	return l.appendErrors(append(dst, l.added...))
}

// appendErrors appends the labels of what is wrong, before others of these names.
func (l *labels) appendErrors(dst []label) []label {
	if l.err != "" {
		dst = appendOnce(dst, label{ErrorLabel, l.err, ofParsed})
	}
	if l.details != "" {
		dst = appendOnce(dst, label{ErrorDetailsLabel, l.details, ofParsed})
	}
	return dst
}

func appendOnce(dst []label, x label) []label {
	for i := range dst {
		if dst[i].name == x.name {
			dst[i] = x
			return dst
		}
	}
	return append(dst, x)
}

// appendLabel appends a label in the form of model.Labels. Unlike there, its value may be empty: in LogQL
// that is not the same as no label.
func appendLabel(dst []byte, name, value string) []byte {
	dst = append(dst, 0x0a)
	dst = binary.AppendUvarint(dst, uint64(2+uvarintLen(len(name))+len(name)+uvarintLen(len(value))+len(value)))
	dst = binary.AppendUvarint(append(dst, 0x0a), uint64(len(name)))
	dst = append(dst, name...)
	dst = binary.AppendUvarint(append(dst, 0x12), uint64(len(value)))
	return append(dst, value...)
}

func uvarintLen(n int) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}
