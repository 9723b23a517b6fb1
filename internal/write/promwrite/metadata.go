package promwrite

import (
	"bytes"

	"github.com/shaledb/shale/internal/write/wire"
)

// metadata is the metadata of a metric family, as ranges of the decoded body.
type metadata struct {
	typ                metricType
	family, help, unit span
}

// metricType is the type of a metric family; both versions number types in the same way.
type metricType uint32

const (
	histogramType      metricType = 3
	gaugeHistogramType metricType = 4
	summaryType        metricType = 5
)

// word returns the name of a type. Numbers of later versions are unknown.
func (t metricType) word() string {
	words := [...]string{"unknown", "counter", "gauge", "histogram", "gaugehistogram", "summary", "info", "stateset"}
	if t >= metricType(len(words)) {
		return words[0]
	}
	return words[t]
}

// metadataV1 parses the MetricMetadata message in [p, end).
func (w *walker) metadataV1(p, end int) error {
	d := w.decoded
	var m metadata
	for p < end {
		n, kind, next, err := wire.Field(d, p, end)
		var begin int
		var typ uint64
		switch {
		case err != nil:
		case n == 1:
			typ, next, err = wire.Number("metadata type", d, kind, next, end)
			m.typ = metricType(typ)
		case n == 2:
			begin, next, err = wire.Message("the name of a metric family", d, kind, next, end)
			m.family = spanOf(begin, next)
		case n == 4:
			begin, next, err = wire.Message("metadata's help", d, kind, next, end)
			m.help = spanOf(begin, next)
		case n == 5:
			begin, next, err = wire.Message("metadata's unit", d, kind, next, end)
			m.unit = spanOf(begin, next)
		default:
			next, err = wire.Skip(d, next, end, kind)
		}
		if err != nil {
			return err
		}
		p = next
	}
	if m.family.size == 0 {
		return nil
	}
	if err := w.roomForMetadata(); err != nil {
		return err
	}
	w.metadata = append(w.metadata, m)
	return nil
}

// metadataV2 parses the Metadata message of a series in [p, end).
func (w *walker) metadataV2(s *seriesWalk, p, end int) error {
	d := w.decoded
	for p < end {
		n, kind, next, err := wire.Field(d, p, end)
		var v uint64
		switch {
		case err != nil:
		case n == 1:
			v, next, err = wire.Number("metadata type", d, kind, next, end)
			s.typ = metricType(v)
		case n == 3:
			v, next, err = wire.Number("help reference", d, kind, next, end)
			s.helpRef = uint32(v)
		case n == 4:
			v, next, err = wire.Number("unit reference", d, kind, next, end)
			s.unitRef = uint32(v)
		default:
			next, err = wire.Skip(d, next, end, kind)
		}
		if err != nil {
			return err
		}
		p = next
	}
	return nil
}

// addFamily records the metadata of a version 2 series unless it equals that of the previous series.
func (w *walker) addFamily(s *seriesWalk) error {
	y := &w.symbolic
	m := metadata{typ: s.typ, family: y.labels.nameAt, help: y.symbols[s.helpRef], unit: y.symbols[s.unitRef]}
	if m.typ == 0 && m.help.size == 0 && m.unit.size == 0 {
		return nil
	}
	m.family.size -= uint32(suffix(m.typ, m.family.slice(w.decoded)))
	if n := len(w.metadata); n > 0 && w.metadata[n-1] == m {
		return nil
	}
	if err := w.roomForMetadata(); err != nil {
		return err
	}
	w.metadata = append(w.metadata, m)
	return nil
}

// suffix returns the length of the suffix that a series name adds to the name of its metric family,
// which version 2 does not transmit. It keeps "_total" of counters: whether that is part of the
// family's name depends on the scrape format, and users look metadata up by the whole name.
func suffix(t metricType, name []byte) int {
	var suffixes []string
	switch t {
	case histogramType:
		suffixes = []string{"_bucket", "_count", "_sum"}
	case gaugeHistogramType:
		suffixes = []string{"_bucket", "_gcount", "_gsum", "_count", "_sum"}
	case summaryType:
		suffixes = []string{"_count", "_sum"}
	}
	for _, s := range suffixes {
		if len(name) > len(s) && bytes.HasSuffix(name, []byte(s)) {
			return len(s)
		}
	}
	return 0
}
