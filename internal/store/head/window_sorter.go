package head

import (
	"context"
	"math"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/part"
)

// windowSorter distributes the rows of each series over parts.
type windowSorter struct {
	h    *Head
	ctx  context.Context
	open []int64
	last struct { // the window of the time that was asked for last
		from, end int64
		Group     local.Group
	}
	options part.WriterOptions
	outputs []*windowOutput
}

// windowOutput is the part of one group that is being written.
type windowOutput struct {
	group local.Group
	file  string
	w     *local.Writer
	rows  model.SeriesRows // of the current series
	begun bool             // the current series, at the writer
}

// begin begins the current series at the writer.
func (out *windowOutput) begin(tenant string, k model.Key) error {
	if out.begun {
		return nil
	}
	out.begun = true
	return out.w.Series(tenant, k, nil)
}

// add takes a series with its rows in order of time. The rows of a window are contiguous; late rows may lie
// on both sides.
func (ws *windowSorter) add(tenant string, k model.Key, _ model.Labels, series *model.SeriesRows, text []part.Text) error {
	for _, out := range ws.outputs {
		out.begun = false
	}
	whole, err := ws.addWhole(tenant, k, series)
	if !whole && err == nil {
		err = ws.addRows(tenant, k, series)
	}
	if err != nil || len(text) == 0 {
		return err
	}
	return ws.addText(tenant, k, text)
}

func (ws *windowSorter) addRows(tenant string, k model.Key, series *model.SeriesRows) error {
	for _, f := range model.PointFamilies() {
		rows := series.Family(f)
		for i := 0; i < rows.Len(); {
			g, end := ws.groupAt(rows.Times[i])
			j := i + 1
			for j < rows.Len() && rows.Times[j] < end {
				j++
			}
			out, err := ws.output(g)
			if err != nil {
				return err
			}
			out.rows.Family(f).AppendRows(rows, i, j)
			i = j
		}
	}
	for _, out := range ws.outputs {
		if out.rows.Len() == 0 {
			continue
		}
		if err := out.begin(tenant, k); err != nil {
			return err
		}
		if err := out.w.Rows(&out.rows); err != nil {
			return err
		}
		out.rows.Reset()
	}
	return nil
}

// addWhole writes a series whose rows are samples of one group, as nearly all are, without copying them. It
// reports whether it did.
func (ws *windowSorter) addWhole(tenant string, k model.Key, series *model.SeriesRows) (bool, error) {
	times := series.Samples.Times
	if len(times) == 0 || series.Exemplars.Len() > 0 {
		return false, nil
	}
	g, end := ws.groupAt(times[0])
	if times[len(times)-1] >= end {
		return false, nil
	}
	out, err := ws.output(g)
	if err == nil {
		err = out.begin(tenant, k)
	}
	if err == nil {
		err = out.w.Rows(series)
	}
	return true, err
}

// addText writes the lines of each interval to its group. They are read while they are written.
func (ws *windowSorter) addText(tenant string, k model.Key, text []part.Text) error {
	r := extentOf(text)
	for at := r.Min; ; {
		g, end := ws.groupAt(at)
		clip := model.TimeRange{Min: at, Max: end - 1}
		if end > r.Max || g == local.Late && end == math.MaxInt64 {
			clip.Max = r.Max
		}
		some, err := part.HasText(ws.ctx, text, clip)
		if err != nil {
			return err
		}
		if some {
			out, err := ws.output(g)
			if err == nil {
				err = out.begin(tenant, k)
			}
			if err == nil {
				err = out.w.Text(ws.ctx, text, clip)
			}
			if err != nil {
				return err
			}
		}
		if clip.Max == r.Max {
			return nil
		}
		at = clip.Max + 1
	}
}

// extentOf bounds the times of several inputs, of which at least one has rows.
func extentOf(text []part.Text) model.TimeRange {
	r := model.TimeRange{Min: math.MaxInt64, Max: math.MinInt64}
	for _, t := range text {
		if times, n := t.Extent(); n > 0 {
			r.Min, r.Max = min(r.Min, times.Min), max(r.Max, times.Max)
		}
	}
	return r
}

// groupAt returns the group of a time, and the end of the interval that has this group. Nearly all rows are
// of one window, so its name is formatted once and not for every series.
func (ws *windowSorter) groupAt(t int64) (g local.Group, end int64) {
	last := &ws.last
	if last.from <= t && t < last.end {
		return last.Group, last.end
	}
	for _, w := range ws.open {
		if t < w {
			return local.Late, w
		}
		if end := w + int64(ws.h.o.Window); t < end {
			last.from, last.end, last.Group = w, end, local.WindowGroup(w, ws.h.o.Window)
			return last.Group, end
		}
	}
	return local.Late, 1<<63 - 1
}

func (ws *windowSorter) output(g local.Group) (*windowOutput, error) {
	for _, out := range ws.outputs {
		if out.group == g {
			return out, nil
		}
	}
	out := &windowOutput{group: g, file: ws.h.nextFile(local.PartSuffix)}
	var err error
	if out.w, err = local.Create(ws.h.o.FS, ws.h.o.Dir, out.file, ws.options); err != nil {
		return nil, err
	}
	ws.outputs = append(ws.outputs, out)
	return out, nil
}

func (ws *windowSorter) finish(e *edit) error {
	for len(ws.outputs) > 0 {
		out := ws.outputs[0]
		ws.outputs = ws.outputs[1:]
		meta, size, err := out.w.Close()
		if err != nil {
			ws.abandon()
			return err
		}
		ws.h.metrics.partBytes.Add(float64(size))
		ws.h.o.Space.Wrote(size)
		e.add = append(e.add, local.NewInfo(out.file, local.Data, out.group, meta, size))
	}
	return nil
}

func (ws *windowSorter) abandon() {
	for _, out := range ws.outputs {
		out.w.Abandon()
	}
	ws.outputs = nil
}
