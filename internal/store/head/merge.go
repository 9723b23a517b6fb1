package head

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/part"
)

// youngParts is how many young parts gather before they are sorted into windows; groupParts is how many parts
// a group may have before some are merged. Both bound the parts that a query opens.
const (
	youngParts = 8
	groupParts = 8
)

// mostYoungText is how many young parts with lines are sorted at one time, since each is open with a page of
// lines and what decodes it, about a megabyte. There are more when flushes are faster than merges.
const mostYoungText = 16

// merge does one merge if one is due and reports whether it did. The caller holds merging.
func (h *Head) merge(ctx context.Context) (bool, error) {
	for s := range signals {
		signal := model.Signal(s)
		if in := h.group(signal, local.Data, local.Young); len(in) >= youngParts || h.waited(in) {
			return true, h.sortOldest(ctx, signal, in)
		}
		if in := h.labelsToMerge(signal); len(in) > 0 {
			return true, h.inSpace(in, 1, func() error { return h.joinLabels(ctx, signal, in) })
		}
		for _, g := range h.groups(signal) {
			for all := h.group(signal, local.Data, g); len(all) > 0; {
				one := h.oneSide(all)
				all = all[len(one):]
				if in := neighbours(one); len(in) > 1 {
					return true, h.inSpace(in, 1, func() error { return h.mergeInto(ctx, signal, g, in) })
				}
			}
		}
	}
	return false, nil
}

// youngTextAge is how long lines stay in young parts. There they are packed for speed and mostly without
// filters, so they take more space and a query reads all of them.
const youngTextAge = time.Minute

// waited reports whether young parts are so old that they must be sorted, however few they are: only windows
// and late rows are shipped.
func (h *Head) waited(in []*local.Part) bool {
	if len(in) == 0 {
		return false
	}
	most := h.o.LateAge
	if in[0].Info.Signal == model.Logs {
		most = min(most, youngTextAge)
	}
	return h.o.Now()-in[0].Info.Created >= int64(most)
}

// group returns the parts of a group that are not being shipped, oldest first.
func (h *Head) group(s model.Signal, k local.Kind, g local.Group) []*local.Part {
	var in []*local.Part
	for _, p := range h.snapshot() {
		if i := &p.Info; i.Signal == s && i.Kind == k && i.Group == g && i.Ship == 0 {
			in = append(in, p)
		}
	}
	return in
}

// groups returns the window groups and the late group, as far as they have parts, in the order in which they
// are to be shipped: late rows come after those of their window.
func (h *Head) groups(s model.Signal) []local.Group {
	var gs []local.Group
	for _, p := range h.snapshot() {
		if i := &p.Info; i.Signal == s && i.Kind == local.Data && i.Group != local.Young && !slices.Contains(gs, i.Group) {
			gs = append(gs, i.Group)
		}
	}
	slices.SortFunc(gs, func(a, b local.Group) int {
		if (a == local.Late) != (b == local.Late) {
			return strings.Compare(string(b), string(a)) // "window ..." before "late"
		}
		return strings.Compare(string(a), string(b))
	})
	return gs
}

// neighbours chooses the parts to merge in a group that has too many: the newest ones, and older ones as long
// as they are not larger than all newer ones together. So sizes grow geometrically towards the past, and the
// number of merges of a row is logarithmic in the size of the group. Only neighbours are merged, since the
// order of arrival decides between rows with one time.
//
// Taking also older parts of up to twice the size was tried: it leaves fewer parts, but rows are merged more
// often.
func neighbours(in []*local.Part) []*local.Part {
	if len(in) <= groupParts {
		return nil
	}
	from := len(in) - 2
	sum := in[from].Info.Bytes + in[from+1].Info.Bytes
	for from > 0 && in[from-1].Info.Bytes <= sum {
		from--
		sum += in[from].Info.Bytes
	}
	return in[from:]
}

// mergeInto makes one part of several of a group.
func (h *Head) mergeInto(ctx context.Context, s model.Signal, g local.Group, in []*local.Part) error {
	e := edit{remove: in}
	o := h.writerOptions(s, in[0].Info.SeqLo, in[len(in)-1].Info.SeqHi)
	for _, p := range in { // late rows are shipped by age
		o.Created = min(o.Created, p.Info.Created)
	}
	if err := h.writePart(ctx, o, local.Data, g, streams(in), nil, &e); err != nil {
		return fmt.Errorf("merge %s: %w", g, err)
	}
	h.metrics.merges.WithLabelValues(string(local.Data)).Inc()
	return h.commit(ctx, e)
}

func streams(in []*local.Part) []part.Stream {
	ss := make([]part.Stream, len(in))
	for i, p := range in {
		ss[i] = &namedStream{p.Reader.Stream(), p}
	}
	return ss
}

// namedStream adds the name of its part to errors.
type namedStream struct {
	part.Stream
	part *local.Part
}

func (s *namedStream) Next(ctx context.Context) (*part.Series, error) {
	next, err := s.Stream.Next(ctx)
	return next, s.part.WrapError(err)
}

// sortYoung sorts all young parts into windows.
func (h *Head) sortYoung(ctx context.Context, s model.Signal) error {
	for {
		in := h.group(s, local.Data, local.Young)
		if len(in) == 0 {
			return nil
		}
		if err := h.sortOldest(ctx, s, in); err != nil {
			return err
		}
	}
}

// sortOldest sorts young parts, only the oldest ones if there are too many for one merge.
func (h *Head) sortOldest(ctx context.Context, s model.Signal, in []*local.Part) error {
	if s == model.Logs {
		in = in[:min(len(in), mostYoungText)]
	}
	in = h.fitting(h.oneSide(in), 1)
	return h.inSpace(in, 1, func() error { return h.sortIntoWindows(ctx, s, in) })
}

// sortIntoWindows merges the oldest young parts into one part for each window that still takes rows and one
// for late rows.
func (h *Head) sortIntoWindows(ctx context.Context, s model.Signal, in []*local.Part) error {
	sorter := &windowSorter{
		h: h, ctx: ctx, open: h.openWindows(s, h.o.Now()),
		options: h.writerOptions(s, in[0].Info.SeqLo, in[len(in)-1].Info.SeqHi),
	}
	sorter.options.Created = in[0].Info.Created // late rows count their age from here
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
