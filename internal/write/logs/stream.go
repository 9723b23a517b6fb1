package logs

import (
	"bytes"
	"fmt"
	"strings"
	"unsafe"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// Stream is a label set after all rules have been applied. It is shared and immutable.
type Stream struct {
	// Labels are the labels with service_name, and Key is their key.
	Labels model.Labels
	Key    model.Key
	// Reason and Why explain why no line of the stream can be stored; both are empty if lines can.
	// Reason is a value of the label `reason` of shale_write_discarded_lines_total.
	Reason, Why string
	// Err is the error from parsing the labels, or nil. Why has its text.
	Err error

	// level is the level that the labels give to each line, if they have one.
	level levelLabel
	// judged are the limits that Reason is about.
	judged LabelLimits
}

// bytes returns the memory of the stream. Its level is a copy of a label, or shared.
func (s *Stream) bytes() int64 {
	return int64(unsafe.Sizeof(*s)) + int64(cap(s.Labels)+len(s.Why)+cap(s.level.value)+cap(s.level.label))
}

// newStream applies the rules to labels, which may be in any order.
func (r *Rules) newStream(lb *model.LabelsBuilder, seed model.KeySeed) *Stream {
	r.addServiceName(lb)
	s := new(Stream)
	var err error
	if s.Labels, err = lb.Append(nil); err != nil {
		s.Labels = nil
		s.Reason, s.Why = write.ReasonDuplicateLabel, duplicate(lb)
		return s
	}
	if s.Reason, s.Why = r.check(s.Labels); s.Reason != "" {
		return s
	}
	s.Key = s.Labels.Key(seed, model.Logs)
	best := noLevel
	for name, value, rest, ok := s.Labels.Next(); ok; name, value, rest, ok = rest.Next() {
		if r := levelRank(name); r < best {
			best, s.level = r, normalLevel(value)
		}
	}
	return s
}

// levelLabel is a level and its detected_level label in canonical form.
type levelLabel struct{ value, label []byte }

func newLevelLabel(value []byte) levelLabel {
	return levelLabel{value, appendLabel(nil, []byte(detectedLevel), value)}
}

// normalLevel returns the level that value spells, or else value itself.
func normalLevel(value []byte) levelLabel {
	if l := parseLevel(value); l != none {
		return newLevelLabel([]byte(l.String()))
	}
	return newLevelLabel(value)
}

// addServiceName adds a service_name unless there is one.
func (r *Rules) addServiceName(lb *model.LabelsBuilder) {
	if len(r.ServiceNames) == 0 || find(lb, serviceName) != nil {
		return
	}
	for _, name := range r.ServiceNames {
		if v := find(lb, name); v != nil {
			lb.Add([]byte(serviceName), v)
			return
		}
	}
	lb.Add([]byte(serviceName), []byte(UnknownService))
}

func find(lb *model.LabelsBuilder, name string) []byte {
	for i := range lb.Len() {
		if n, v := lb.At(i); string(n) == name {
			return v
		}
	}
	return nil
}

// duplicate returns the error text for labels that have a name more than once.
func duplicate(lb *model.LabelsBuilder) string {
	var m Metadata
	m.Reset()
	for i := range lb.Len() {
		m.add(lb.At(i))
	}
	m.sort()
	var all []byte
	var name []byte
	for i, p := range m.pairs {
		if i > 0 && name == nil && bytes.Equal(p.name, m.pairs[i-1].name) {
			name = p.name
		}
		all = appendLabel(all, p.name, p.value)
	}
	return fmt.Sprintf("stream '%s' has duplicate label name: '%s'", write.DescribeStream(all), cut(name))
}

// check returns the reason why a stream is not allowed and an error text, or two empty strings.
func (r *Rules) check(l model.Labels) (reason, why string) {
	if len(l) == 0 {
		return write.ReasonLabels, "error at least one label pair is required per stream"
	}
	if len(l) > model.MaxLabelBytes {
		return write.ReasonLabelsTooLong, fmt.Sprintf("stream '%s' has %d bytes of labels; limit %d", write.DescribeStream(l), len(l), model.MaxLabelBytes)
	}
	n := l.Len()
	if l.Get(serviceName) != nil {
		n--
	}
	if r.MaxLabels > 0 && n > r.MaxLabels {
		return write.ReasonTooManyLabels, fmt.Sprintf("entry for stream '%s' has %d label names; limit %d", write.DescribeStream(l), n, r.MaxLabels)
	}
	for name, value, rest, ok := l.Next(); ok; name, value, rest, ok = rest.Next() {
		switch {
		case r.MaxNameBytes > 0 && len(name) > r.MaxNameBytes:
			return write.ReasonNameTooLong, fmt.Sprintf("stream '%s' has label name too long: '%s'", write.DescribeStream(l), cut(name))
		case r.MaxValueBytes > 0 && len(value) > r.MaxValueBytes:
			return write.ReasonValueTooLong, fmt.Sprintf("stream '%s' has label value too long: '%s'", write.DescribeStream(l), cut(value))
		}
	}
	return "", ""
}

// cut shortens a long text for an error.
func cut(b []byte) string {
	const most = 100
	if len(b) <= most {
		return string(b)
	}
	return strings.ToValidUTF8(string(b[:most]), "") + "..."
}
