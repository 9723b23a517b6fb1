package victorialogs

import (
	"bytes"
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/streamtext"
	"github.com/shaledb/shale/internal/write/logs"
)

// streamNames turns streams as VictoriaLogs spells them, such as {app="web",service.name="x"}, into labels.
// They get what a receiver of Shale would have made of them: names of letters, digits and underscores, and
// service_name. It is safe for concurrent use.
type streamNames struct {
	cache *logs.Streams
	rules logs.Rules
}

func newStreamNames(seed model.KeySeed, rules logs.Rules) *streamNames {
	// What is stored is shown, however long it is.
	rules.LabelLimits, rules.Limits = logs.LabelLimits{}, logs.Limits{}
	return &streamNames{logs.NewStreams(seed, logs.StreamCacheBytes), rules}
}

// of returns the stream of a spelling. It is nil for a stream without labels, which no selector of LogQL can
// select.
func (s *streamNames) of(spelling []byte) (*logs.Stream, error) {
	st := s.cache.Get(&s.rules, spelling, readStream)
	switch {
	case st.Reason == "":
		return st, nil
	case string(spelling) == "{}" || len(spelling) == 0:
		return nil, nil
	}
	return nil, fmt.Errorf("%w: VictoriaLogs has the stream %.*q, which cannot be shown as labels: %s", model.ErrCorrupt, maxErrorBytes, spelling, st.Why)
}

// readStream reads the labels of a stream as VictoriaLogs spells it.
func readStream(spelling []byte, lb *model.LabelsBuilder) error {
	return streamtext.Each(spelling, func(name, value []byte) error {
		name, err := labelName(name)
		if err == nil {
			lb.Add(bytes.Clone(name), value)
		}
		return err
	})
}

// labelName returns the name of the label that a field of a stream becomes.
func labelName(field []byte) ([]byte, error) {
	if isLabelName(field) {
		return field, nil
	}
	var names logs.Metadata
	names.Reset()
	return names.Sanitize(field)
}

// isLabelName reports whether a name is one of a label as it stands, such as a__b.
func isLabelName(name []byte) bool {
	for i, c := range name {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return len(name) > 0
}

// fieldsOf returns the fields of a stream as they are in VictoriaLogs. They share the bytes of its spelling.
func fieldsOf(spelling []byte) (all []field, err error) {
	if n := bytes.Count(spelling, []byte(`="`)); n > 0 {
		all = make([]field, 0, n)
	}
	err = streamtext.Each(spelling, func(name, value []byte) error {
		all = append(all, field{name, value})
		return nil
	})
	return all, err
}
