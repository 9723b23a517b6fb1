package promwrite

import (
	"bytes"

	"github.com/shaledb/shale/internal/write/wire"
)

// metadata is what a body tells of a metric family; the spans lie in the decoded body.
type metadata struct {
	typ                metricType
	family, help, unit span
}

// metricType is the type of a metric family as both versions number it.
type metricType uint32

const (
	histogramType      metricType = 3
	gaugeHistogramType metricType = 4
	summaryType        metricType = 5
)

// word returns the word for a type; numbers of later versions are unknown.
func (t metricType) word() string {
	words := [...]string{"unknown", "counter", "gauge", "histogram", "gaugehistogram", "summary", "info", "stateset"}
	if t >= metricType(len(words)) {
		return words[0]
	}
	return words[t]
}

// metadataV1 reads the MetricMetadata message in [p, end).
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
	w.metadata = append(w.metadata, m)
	return w.room()
}

// metadataV2 reads the Metadata message in [p, end) of a series.
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

// tellMetadata notes what a series of version 2 says of its family, unless the one before said just that.
func (w *walker) tellMetadata(s *seriesWalk) {
	y := &w.symbolic
	m := metadata{typ: s.typ, family: y.labels.nameAt, help: y.symbols[s.helpRef], unit: y.symbols[s.unitRef]}
	if m.typ == 0 && m.help.size == 0 && m.unit.size == 0 {
		return
	}
	m.family.size -= uint32(suffix(m.typ, m.family.of(w.decoded)))
	if n := len(w.metadata); n > 0 && w.metadata[n-1] == m {
		return
	}
	w.metadata = append(w.metadata, m)
}

// suffix returns the length of what the name of a series has behind that of its metric family, which version 2 does not
// name. Of counters "_total" is not taken away: whether it belongs to the name depends on the format in which the target
// was scraped, and it is by the whole name that people ask.
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
