package head

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// youngParts is how many young parts gather before they are sorted into windows; groupParts is how many parts a group
// may have before some are merged. A query opens that many of each at most.
const (
	youngParts = 8
	groupParts = 8
)

// merge does one merge if one is due and reports whether it did. The caller holds merging.
func (h *Head) merge(ctx context.Context) (bool, error) {
	for s := range signals {
		signal := model.Signal(s)
		if in := h.group(signal, dataPart, young); len(in) >= youngParts || h.waited(in) {
			return true, h.sortIntoWindows(ctx, signal, in)
		}
		if in := h.labelsToMerge(signal); len(in) > 0 {
			return true, h.joinLabels(ctx, signal, in)
		}
		for _, g := range h.groups(signal) {
			if in := neighbours(h.group(signal, dataPart, g)); len(in) > 1 {
				return true, h.mergeInto(ctx, signal, g, in)
			}
		}
	}
	return false, nil
}

// waited reports whether young parts are so old that they must be sorted however few they are: only groups of windows and
// late rows are ever shipped.
func (h *Head) waited(in []*localPart) bool {
	return len(in) > 0 && h.o.Now()-in[0].info.Created >= int64(h.o.LateAge)
}

// group returns the parts of a group that are not being shipped, oldest first.
func (h *Head) group(s model.Signal, k kind, g group) []*localPart {
	var in []*localPart
	for _, p := range h.snapshot() {
		if i := &p.info; i.Signal == s && i.Kind == k && i.Group == g && i.Ship == 0 {
			in = append(in, p)
		}
	}
	return in
}

// groups returns the window groups and the late group, as far as they have parts, in the order in which they are to be
// shipped: late rows come after those of their window.
func (h *Head) groups(s model.Signal) []group {
	var gs []group
	for _, p := range h.snapshot() {
		if i := &p.info; i.Signal == s && i.Kind == dataPart && i.Group != young && !slices.Contains(gs, i.Group) {
			gs = append(gs, i.Group)
		}
	}
	slices.SortFunc(gs, func(a, b group) int {
		if (a == late) != (b == late) {
			return strings.Compare(string(b), string(a)) // "window ..." before "late"
		}
		return strings.Compare(string(a), string(b))
	})
	return gs
}

// neighbours chooses what to merge in a group that has too many parts: the newest ones, and older ones as long as they
// are not larger than all newer ones together. So sizes grow geometrically towards the past, and a row is merged
// as often as the logarithm of the group's size. Only neighbours are merged, since order of arrival decides between
// rows of one time.
//
// Taking older ones of up to twice the size, too, makes fewer parts of more work: of 25 flushes a row was merged 1.4 times
// instead of once, of 250 flushes 3.4 times instead of 2.6.
func neighbours(in []*localPart) []*localPart {
	if len(in) <= groupParts {
		return nil
	}
	from := len(in) - 2
	sum := in[from].info.Bytes + in[from+1].info.Bytes
	for from > 0 && in[from-1].info.Bytes <= sum {
		from--
		sum += in[from].info.Bytes
	}
	return in[from:]
}

// mergeInto makes one part of several of a group.
func (h *Head) mergeInto(ctx context.Context, s model.Signal, g group, in []*localPart) error {
	e := edit{remove: in}
	o := h.writerOptions(s, in[0].info.SeqLo, in[len(in)-1].info.SeqHi)
	for _, p := range in { // late rows are shipped by age
		o.Created = min(o.Created, p.info.Created)
	}
	if err := h.writePart(ctx, o, dataPart, g, streams(in), nil, &e); err != nil {
		return fmt.Errorf("merge %s: %w", g, err)
	}
	h.metrics.merges.WithLabelValues(string(dataPart)).Inc()
	return h.commit(ctx, e)
}

func streams(in []*localPart) []part.Stream {
	ss := make([]part.Stream, len(in))
	for i, p := range in {
		ss[i] = &namedStream{p.reader.Stream(), p}
	}
	return ss
}

// namedStream says in its error which part it is of.
type namedStream struct {
	part.Stream
	part *localPart
}

func (s *namedStream) Err() error { return s.part.named(s.Stream.Err()) }

// sortIntoWindows merges young parts, all there are, into one part for each window that still takes rows and one for
// late rows.
func (h *Head) sortIntoWindows(ctx context.Context, s model.Signal, in []*localPart) error {
	sorter := &windowSorter{
		h: h, open: h.openWindows(s, h.o.Now()),
		options: h.writerOptions(s, in[0].info.SeqLo, in[len(in)-1].info.SeqHi),
	}
	sorter.options.Created = in[0].info.Created // late rows count their age from here
	if err := part.Merge(ctx, streams(in), sorter.add, part.MergeOptions{}); err != nil {
		sorter.abandon()
		return fmt.Errorf("sort into windows: %w", err)
	}
	e := edit{remove: in}
	if err := sorter.finish(&e); err != nil {
		h.removeFiles(e.add)
		return fmt.Errorf("sort into windows: %w", err)
	}
	h.metrics.merges.WithLabelValues("windows").Inc()
	return h.commit(ctx, e)
}

// windowSorter distributes the rows of each series over parts.
type windowSorter struct {
	h    *Head
	open []int64
	last struct { // the window of the time that was asked for last
		from, end int64
		group     group
	}
	options part.WriterOptions
	outputs []*windowOutput
}

// windowOutput is the part of one group that is being written.
type windowOutput struct {
	group group
	file  string
	w     *partWriter
	rows  model.SeriesRows // of the current series
}

// add takes a series with its rows in order of time. A window's rows lie together; late rows may lie on both sides.
func (ws *windowSorter) add(tenant string, k model.Key, _ model.Labels, series *model.SeriesRows, _ []part.Text) error {
	if whole, err := ws.addWhole(tenant, k, series); whole || err != nil {
		return err
	}
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
		if err := out.w.Series(tenant, k, nil); err != nil {
			return err
		}
		if err := out.w.Rows(&out.rows); err != nil {
			return err
		}
		out.rows.Reset()
	}
	return nil
}

// addWhole takes a series whose rows are samples of one group, as nearly all are, without copying them. It reports whether it has.
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
		err = out.w.Series(tenant, k, nil)
	}
	if err == nil {
		err = out.w.Rows(series)
	}
	return true, err
}

// groupAt returns the group of a time, and the time up to which the same holds. Nearly all rows are of one window, whose
// name is made once: making it for every series took half of sorting them.
func (ws *windowSorter) groupAt(t int64) (g group, end int64) {
	last := &ws.last
	if last.from <= t && t < last.end {
		return last.group, last.end
	}
	for _, w := range ws.open {
		if t < w {
			return late, w
		}
		if end := w + int64(ws.h.o.Window); t < end {
			last.from, last.end, last.group = w, end, windowGroup(w, ws.h.o.Window)
			return last.group, end
		}
	}
	return late, 1<<63 - 1
}

func (ws *windowSorter) output(g group) (*windowOutput, error) {
	for _, out := range ws.outputs {
		if out.group == g {
			return out, nil
		}
	}
	out := &windowOutput{group: g, file: ws.h.nextFile(partSuffix)}
	var err error
	if out.w, err = createPart(ws.h.o.FS, ws.h.o.Dir, out.file, ws.options); err != nil {
		return nil, err
	}
	ws.outputs = append(ws.outputs, out)
	return out, nil
}

func (ws *windowSorter) finish(e *edit) error {
	for len(ws.outputs) > 0 {
		out := ws.outputs[0]
		ws.outputs = ws.outputs[1:]
		meta, size, err := out.w.finish()
		if err != nil {
			ws.abandon()
			return err
		}
		ws.h.metrics.partBytes.Add(float64(size))
		e.add = append(e.add, infoOf(out.file, dataPart, out.group, meta, size))
	}
	return nil
}

func (ws *windowSorter) abandon() {
	for _, out := range ws.outputs {
		out.w.abandon()
	}
	ws.outputs = nil
}
