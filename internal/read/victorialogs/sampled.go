package victorialogs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/draw"
	"github.com/shaledb/shale/internal/read/victorialogs/rfc3339"
	"github.com/shaledb/shale/internal/read/victorialogs/watch"
)

const (
	// samplesPause is how long samples have streams once a line's level may depend on its stream, and how long
	// none is asked for after one that was too large.
	samplesPause = 10 * time.Minute
	// A sample has at most sampleExcess times as many lines as are wanted, and maxSampleBytes of them. Lines
	// that are equal in all but their metadata are all chosen or none.
	sampleExcess   = 4
	maxSampleBytes = 32 << 20
)

var errLargeSample = errors.New("a sample is too large")

// sampleWindow is a window of a sample.
type sampleWindow struct {
	model.TimeRange
	stamp   string
	settled bool
	key     cache.Key
	// lines is how many lines there are. The sample has 1 of 2^halvings of them.
	lines    int64
	halvings int
	rows     [][]field // of the sample
	charged  int64     // to the quota, for rows
	found    bool      // it need not be asked for
	fresh    bool      // the rows were asked for now
}

// sampling is a sample of a request.
type sampling struct {
	*directory
	windows []sampleWindow
	width   int64
	target  int64 // lines of a window
	streams bool  // rows have streams and all metadata
	mixed   bool  // a row without a stream has a level that may depend on it
	rows    int
	charged int64 // to the quota, for rows
}

// charge charges the query for rows of a window.
func (x *sampling) charge(w *sampleWindow, rows int, bytes int64) error {
	if x.rows += rows; x.rows > sampleExcess*x.req.Sample.Lines || x.charged+bytes > maxSampleBytes {
		return errLargeSample
	}
	if err := x.req.Quota.TakeBytes(bytes); err != nil {
		return err
	}
	x.charged, w.charged = x.charged+bytes, w.charged+bytes
	return nil
}

// drop gives up the rows of a window.
func (x *sampling) drop(w *sampleWindow) {
	_ = x.req.Quota.TakeBytes(-w.charged) // giving back does not fail
	x.charged -= w.charged
	w.rows, w.charged = nil, 0
}

// release gives up all rows.
func (x *sampling) release() {
	for i := range x.windows {
		x.drop(&x.windows[i])
	}
	x.windows, x.rows = nil, 0
}

// sample returns a cursor over a sample of the lines of a request; nil: all lines must be read.
func (d *directory) sample(ctx context.Context) (model.TextCursor, error) {
	k := &d.source.samples
	name := d.owner(ctx) + d.filter.streams
	large := "large " + name + " " + d.filter.lines
	if !d.isPushed() || d.refused(formSamples) || k.pauses.Lasts(large) {
		return nil, nil
	}
	x := &sampling{directory: d}
	if !x.divide() {
		return nil, nil
	}
	x.streams = !d.req.Sample.Plain || d.req.Horizon.MayHide(d.req.Range.Min) || k.pauses.Lasts(name)
	defer x.release()
	err := x.read(ctx)
	if err == nil && x.mixed {
		k.pauses.Begin(name, samplesPause)
		x.release()
		x.streams, x.mixed = true, false
		x.divide()
		err = x.read(ctx)
	}
	switch {
	case err == errLargeSample:
		k.pauses.Begin(large, samplesPause)
		return nil, nil
	case errors.Is(err, model.ErrInvalid):
		return nil, d.refuse(ctx, formSamples, kindSamples, draw.Probe)
	case err != nil:
		return nil, err
	}
	return x.layOut()
}

// isPushed reports whether VictoriaLogs selects exactly the streams of the request.
func (d *directory) isPushed() bool {
	some := false
	for i := range d.req.Matchers {
		m := &d.req.Matchers[i]
		if _, where, _ := streamFilter(m, d.source.derives); where != model.Pushed {
			return false
		}
		some = some || !m.MatchesEmpty()
	}
	return some // a stream without labels has none
}

// divide divides the range into windows. ok is false if it is too long.
func (x *sampling) divide() (ok bool) {
	r := x.req.Range
	if x.width, ok = draw.Width(r); !ok {
		return false
	}
	x.target = max(1, int64(x.req.Sample.Lines)/((r.Max-r.Min)/x.width+1))
	x.windows = nil
	for from := floorDiv(r.Min, x.width) * x.width; from <= r.Max; from += x.width {
		x.windows = append(x.windows, sampleWindow{TimeRange: model.TimeRange{Min: from, Max: from + x.width - 1}})
	}
	return true
}

// read gets the samples of all windows.
func (x *sampling) read(ctx context.Context) error {
	s := x.source
	asked := int64(0)
	if !x.req.Cost.Fresh {
		x.name(ctx)
		asked = s.watch.Elapsed()
		if err := s.samples.find(ctx, x); err != nil {
			return err
		}
	}
	if err := x.count(ctx); err != nil {
		return err
	}
	if err := x.ask(ctx); err != nil || x.mixed {
		return err
	}
	s.samples.keep(x, asked, s.watch.Elapsed())
	return nil
}

// name gives windows their stamps and keys. Without a tier that others share, it does not wait for a count.
func (x *sampling) name(ctx context.Context) {
	if x.source.shared == nil && !x.source.watch.HasCounted(x.account.Account) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		cancel()
	}
	x.source.watch.Stamps(ctx, x.account.Account, len(x.windows), func(i int) model.TimeRange { return x.windows[i].TimeRange }, func(i int, s watch.Stamp) {
		w := &x.windows[i]
		w.stamp, w.settled = string(s.Text), s.Settled
		text := fmt.Sprintf("sample %d %v %q %s %d %v\n%x", draw.Version, x.account.Account, x.account.filter, x.filter.in(w.TimeRange), x.target, x.streams, w.stamp)
		w.key = cache.Key{Object: x.source.client.url, Kind: cache.Counts, Digest: cache.DigestOf([]byte(text))}
	})
}

// holes returns the parts of time that are asked for, and the windows of them.
func (x *sampling) holes(wanted func(w *sampleWindow) bool) (parts []model.TimeRange) {
	for i := range x.windows {
		w := &x.windows[i]
		if !wanted(w) {
			continue
		}
		// No line after the range is wanted, but a window is kept as a whole.
		last := w.Max
		if !w.settled {
			last = min(last, x.req.Range.Max)
		}
		if n := len(parts); n > 0 && parts[n-1].Max+1 == w.Min {
			parts[n-1].Max = last
		} else {
			parts = append(parts, model.TimeRange{Min: w.Min, Max: last})
		}
	}
	return parts
}

// in returns the filter of the lines of some parts of time.
func (x *sampling) in(parts []model.TimeRange) string {
	text := x.filter.in(model.TimeRange{Min: parts[0].Min, Max: parts[len(parts)-1].Max})
	if len(parts) > 1 {
		text += " " + anyTime(parts)
	}
	return text
}

func anyTime(parts []model.TimeRange) string {
	all := make([]string, len(parts))
	for i, r := range parts {
		all[i] = timeFilter(r)
	}
	if len(all) == 1 {
		return all[0]
	}
	return "(" + strings.Join(all, " or ") + ")"
}

// at returns the window of a time of a row.
func (x *sampling) at(row []field) (*sampleWindow, error) {
	if t, ok := rfc3339.Parse(valueOf(row, "_time")); ok {
		if i := floorDiv(t-x.windows[0].Min, x.width); i >= 0 && i < int64(len(x.windows)) && !x.windows[i].found {
			return &x.windows[i], nil
		}
	}
	return nil, fmt.Errorf("%w: VictoriaLogs at %s has sent a row of another time than asked for: %s", model.ErrCorrupt, x.source.client.url, rowText(row))
}

// count counts the lines of the windows that are not known.
func (x *sampling) count(ctx context.Context) error {
	parts := x.holes(func(w *sampleWindow) bool { return !w.found })
	if len(parts) == 0 {
		return nil
	}
	text := x.in(parts) + " | stats by (_time:" + strconv.FormatInt(x.width, 10) + "ns) count() n"
	return x.source.client.query(ctx, x.account, kindSamples, text, func(row []field) error {
		w, err := x.at(row)
		if err != nil {
			return err
		}
		if w.lines, err = strconv.ParseInt(string(valueOf(row, "n")), 10, 64); err != nil || w.lines < 0 {
			return fmt.Errorf("%w: VictoriaLogs at %s has sent a count that is not one: %s", model.ErrCorrupt, x.source.client.url, rowText(row))
		}
		w.halvings = draw.Halvings(w.lines, x.target)
		return nil
	})
}

// ask asks for the samples of the windows that are not known.
func (x *sampling) ask(ctx context.Context) error {
	halved := func(n int) []model.TimeRange {
		return x.holes(func(w *sampleWindow) bool { return !w.found && w.lines > 0 && (n < 0 || w.halvings == n) })
	}
	if all := halved(-1); len(all) > 0 {
		var parts []draw.Part
		for n := range draw.MostHalvings + 1 {
			if windows := halved(n); len(windows) > 0 {
				parts = append(parts, draw.Part{Times: anyTime(windows), Halvings: n})
			}
		}
		if err := x.add(ctx, x.in(all)+draw.Some(parts, x.streams)); err != nil || x.mixed {
			return err
		}
	}
	// Many equal lines may all be left out. Yet something is to stand for them.
	without := x.holes(func(w *sampleWindow) bool { return !w.found && w.halvings > 0 && len(w.rows) == 0 })
	if len(without) > 0 {
		if err := x.add(ctx, x.in(without)+draw.Lowest(x.width, x.streams)); err != nil || x.mixed {
			return err
		}
	}
	for i := range x.windows {
		w := &x.windows[i]
		if w.found {
			continue
		}
		w.fresh = true
		if n := int64(len(w.rows)); n < w.lines && (w.halvings == 0 || n == 0) {
			return fmt.Errorf("%w: VictoriaLogs at %s has sent %d of the %d lines that it counted from %s to %s", model.ErrTransient,
				x.source.client.url, n, w.lines, timeText(w.Min), timeText(w.Max))
		}
	}
	return nil
}

// add adds the rows of a request to their windows.
func (x *sampling) add(ctx context.Context, text string) error {
	return x.source.client.query(ctx, x.account, kindSamples, text, func(row []field) error {
		w, err := x.at(row)
		if err != nil {
			return err
		}
		level := draw.Level{}
		for i := range row {
			if len(row[i].value) > 0 {
				level.Add(row[i].name)
			}
		}
		x.mixed = x.mixed || !x.streams && !level.IsKnown()
		x.source.metrics.rows.Inc()
		own, size := cloned(row)
		w.rows = append(w.rows, own)
		return x.charge(w, 1, int64(size))
	})
}
