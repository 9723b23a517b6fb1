package verify

import (
	"maps"
	"slices"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/load/lines"
)

// gotLine is a line of a query.
type gotLine struct {
	at       int64
	stream   string // its labels in canonical form, without those that servers add
	text     string
	metadata []lines.Label
}

// Servers add the service of a stream, and the level that they detect in a line.
const (
	serviceLabel = "service_name"
	levelLabel   = "detected_level"
)

// linesOf copies the lines of a page, without the labels that servers add.
func linesOf(page []client.Line) []gotLine {
	streams := map[string]string{}
	out := make([]gotLine, 0, len(page))
	for i := range page {
		l := &page[i]
		stream, ok := streams[l.Stream]
		if !ok {
			var ls []lines.Label
			for _, name := range slices.Sorted(maps.Keys(l.Labels)) {
				if name != serviceLabel {
					ls = append(ls, lines.Label{Name: name, Value: l.Labels[name]})
				}
			}
			stream = streamText(ls)
			streams[l.Stream] = stream
		}
		got := gotLine{at: l.At, stream: stream, text: string(l.Text)}
		for _, m := range l.Metadata {
			if m.Name != levelLabel {
				got.metadata = append(got.metadata, lines.Label(m))
			}
		}
		out = append(out, got)
	}
	return out
}

// streamText writes labels in canonical form.
func streamText(ls []lines.Label) string {
	var b []byte
	for _, l := range ls {
		b = append(append(append(append(b, l.Name...), 0), l.Value...), 0)
	}
	return string(b)
}
