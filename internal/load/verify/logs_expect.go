package verify

import (
	"cmp"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/load/lines"
	"github.com/shaledb/shale/internal/load/statefile"
)

// wantLine is a line that was sent or may have been sent.
type wantLine struct {
	at        int64
	order     int // of arrival: the lines of a node in the order of its pushes
	stream    string
	text      string
	metadata  []lines.Label
	certainty certainty
	seen      bool
}

// compare compares a line with a line of a query, except for the time. If they differ only by invalid UTF-8,
// replaced is set.
func (w *wantLine) compare(g *gotLine) (same, replaced bool) {
	if w.stream != g.stream || !slices.Equal(w.metadata, g.metadata) {
		return false, false
	}
	if w.text == g.text {
		return true, false
	}
	// Some JSON encoders write one U+FFFD for adjacent invalid bytes, others one for each.
	if sane := strings.ToValidUTF8(w.text, "\uFFFD"); sane != w.text {
		return sane == squeezed(g.text), true
	}
	return false, false
}

// squeezed replaces adjacent U+FFFD by one.
func squeezed(s string) string {
	const one, two = "\uFFFD", "\uFFFD\uFFFD"
	for strings.Contains(s, two) {
		s = strings.ReplaceAll(s, two, one)
	}
	return s
}

// expected are the lines of one node, returned by time.
type expected struct {
	state   *statefile.State
	writer  *lines.Writer
	node    int
	window  int // the next one
	windows int // that may have been sent in part
	pending []*wantLine
	order   int
	known   certainty // of the push that is being written
	early   int64
	streams map[int]string
	current string
}

func newExpected(s *statefile.State, files []lines.FileLines, node int) *expected {
	e := &expected{state: s, writer: s.Logs.NewWriter(s.Timeline), node: node, windows: s.Acks.Rounds(), early: s.Logs.Earliest(s.Timeline), streams: map[int]string{}}
	e.writer.Files = files
	if !s.Ended {
		e.windows += roundsInFlight
	}
	if w := s.Logs.Windows; w > 0 {
		e.windows = min(e.windows, w)
	}
	return e
}

// begin and end bound the times of all lines.
func (e *expected) begin() int64 { return max(0, e.state.Timeline.Start-e.early) }
func (e *expected) end() int64   { return e.state.Timeline.At(e.windows) }

// until returns the lines before a time that have not been returned, by time and arrival.
func (e *expected) until(at int64) []*wantLine {
	for e.window < e.windows && e.state.Timeline.At(e.window)-e.early < at {
		e.known = e.certainty()
		e.writer.Push(e.window, e.node, e)
		e.window++
	}
	slices.SortFunc(e.pending, func(a, b *wantLine) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order)) })
	n, _ := slices.BinarySearchFunc(e.pending, at, func(w *wantLine, at int64) int { return cmp.Compare(w.at, at) })
	due := e.pending[:n]
	e.pending = slices.Clone(e.pending[n:])
	return once(due)
}

// certainty returns the certainty of the next push.
func (e *expected) certainty() certainty {
	switch {
	case e.state.Acks.Acked(e.window, e.node):
		return surely
	case !e.state.Ended, e.state.Acks.Tried(e.window, e.node):
		return perhaps
	}
	return never
}

// once keeps one of the lines that were sent twice: the first, with the higher certainty of both.
func once(all []*wantLine) []*wantLine {
	out := all[:0]
	from := 0 // of the lines of this time
	for _, w := range all {
		if len(out) > from && out[from].at != w.at {
			from = len(out)
		}
		i := slices.IndexFunc(out[from:], func(o *wantLine) bool {
			return o.stream == w.stream && o.text == w.text && slices.Equal(o.metadata, w.metadata)
		})
		if i < 0 {
			out = append(out, w)
			continue
		}
		first := out[from+i]
		first.certainty = max(first.certainty, w.certainty)
	}
	return out
}

func (e *expected) Stream(stream int) {
	text, ok := e.streams[stream]
	if !ok {
		text = streamText(e.state.Logs.LabelsOf(stream))
		e.streams[stream] = text
	}
	e.current = text
}

func (e *expected) Line(at int64, text []byte, metadata []lines.Label) {
	e.pending = append(e.pending, &wantLine{
		at: at, order: e.order, stream: e.current, text: string(text), metadata: slices.Clone(metadata), certainty: e.known,
	})
	e.order++
}
