package readtest

import (
	"cmp"
	"slices"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
)

// World is lines in several sources, which may have the same lines.
type World struct {
	Sources []*Memory
	Streams []model.Labels    // by key
	Lines   map[string][]Line // by labels: those of all sources, in the order of a reader, each once
}

// NewWorld returns a world of streams without lines.
func NewWorld(streams ...model.Labels) *World {
	w := &World{Streams: streams, Lines: make(map[string][]Line)}
	slices.SortFunc(w.Streams, func(a, b model.Labels) int { return a.Key(1, model.Logs).Compare(b.Key(1, model.Logs)) })
	return w
}

// Fill draws sources, with lines of each stream in each of them.
func (w *World) Fill(t *rapid.T, tenant string, mostSources, mostLines int, line func(t *rapid.T) Line) {
	for s := range rapid.IntRange(1, mostSources).Draw(t, "sources") {
		m := NewMemory(uint64(s + 1))
		m.SetTextPage(rapid.IntRange(1, 30).Draw(t, "chunk"), rapid.IntRange(1, 5).Draw(t, "chunks in a page"))
		w.Sources = append(w.Sources, m)
		for _, l := range w.Streams {
			var lines []Line
			for range rapid.IntRange(0, mostLines).Draw(t, "lines") {
				lines = append(lines, line(t))
			}
			m.AddText(tenant, l.Key(1, model.Logs), l, lines...)
			w.Add(l, lines)
		}
	}
}

// Add adds lines that have come after all others, but for those that are there.
func (w *World) Add(l model.Labels, lines []Line) {
	have := w.Lines[string(l)]
	for _, x := range lines {
		if !slices.ContainsFunc(have, x.equal) {
			have = append(have, x)
		}
	}
	slices.SortStableFunc(have, func(a, b Line) int { return cmp.Compare(a.Time, b.Time) })
	w.Lines[string(l)] = have
}

// equal reports whether two lines are the same row.
func (x Line) equal(y Line) bool {
	return x.Time == y.Time && x.Text == y.Text && string(x.Metadata) == string(y.Metadata)
}
