package victorialogs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/rfc3339"
	"github.com/shaledb/shale/internal/read/victorialogs/watch"
	"github.com/shaledb/shale/internal/write/logs"
)

// A sample of lines is chosen in windows of time, which are the same for all ranges of about one length. In
// each window VictoriaLogs counts the lines and sends those whose hash is below a bound: all of a small
// window, and of others a half, a quarter and so on. The hash is of the time and the text. So a window has
// the same sample at each request until its lines change, and need not be asked for again.

const (
	// sampleWindows is how many windows a range has at most, besides the one that crosses its beginning.
	sampleWindows = 64
	// sampleHashes is the number of hashes.
	sampleHashes = 1_000_003
	// mostHalvings keeps enough hashes in the smallest part. Windows of more lines have a larger sample.
	mostHalvings = 12
	// samplesPause is how long no sample is asked for after the server has refused one as invalid, and how long
	// samples have streams once a line's level may depend on its stream.
	samplesPause = 10 * time.Minute
)

// sampleWidths are the widths of windows. Each window is in one of the next width, and is a bucket of
// VictoriaLogs.
var sampleWidths = [...]time.Duration{
	10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

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
	charged int64 // to the quota, for rows
}

// charge charges the query for rows.
func (x *sampling) charge(bytes int64) error {
	if err := x.req.Quota.TakeBytes(bytes); err != nil {
		return err
	}
	x.charged += bytes
	return nil
}

// release gives up the rows.
func (x *sampling) release() {
	_ = x.req.Quota.TakeBytes(-x.charged) // giving back does not fail
	x.charged, x.windows = 0, nil
}

// sample returns a cursor over a sample of the lines of a request; nil: all lines must be read.
func (d *directory) sample(ctx context.Context) (model.TextCursor, error) {
	k := &d.source.samples
	if !d.isPushed() || k.pauses.Lasts("") {
		return nil, nil
	}
	x := &sampling{directory: d}
	if !x.divide() {
		return nil, nil
	}
	name := d.owner(ctx) + d.filter.streams
	x.streams = !d.req.Sample.Plain || d.req.Horizon.MayHide(d.req.Range.Min) || k.pauses.Lasts(name)
	defer x.release()
	err := x.read(ctx)
	if err == nil && x.mixed {
		k.pauses.Begin(name, samplesPause)
		x.release()
		x.streams = true
		x.divide()
		err = x.read(ctx)
	}
	switch {
	case errors.Is(err, model.ErrInvalid): // an old server, perhaps
		k.pauses.Begin("", samplesPause)
		return nil, nil
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
	if r.Min < 0 || r.Max > math.MaxInt64/2 {
		return false
	}
	for _, w := range sampleWidths {
		if x.width = int64(w); (r.Max-r.Min)/x.width < sampleWindows {
			ok = true
			break
		}
	}
	x.target = max(1, int64(x.req.Sample.Lines)/((r.Max-r.Min)/x.width+1))
	x.windows = nil
	for from := floorDiv(r.Min, x.width) * x.width; ok && from <= r.Max; from += x.width {
		x.windows = append(x.windows, sampleWindow{TimeRange: model.TimeRange{Min: from, Max: from + x.width - 1}})
	}
	return ok
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
		text := fmt.Sprintf("sample %d %v %q %s %d %v\n%x", sharedVersion, x.account.Account, x.account.filter, x.filter.in(w.TimeRange), x.target, x.streams, w.stamp)
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
		w.halvings = halvings(w.lines, x.target)
		return nil
	})
}

// halvings returns how often the lines of a window are halved, so that about the target is left.
func halvings(lines, target int64) (n int) {
	for n < mostHalvings && float64(lines)/float64(int64(1)<<n) > math.Sqrt2*float64(target) {
		n++
	}
	return n
}

// ask asks for the samples of the windows that are not known.
func (x *sampling) ask(ctx context.Context) error {
	each := func(row []field) error {
		w, err := x.at(row)
		if err != nil {
			return err
		}
		x.mixed = x.mixed || !x.streams && !knowsLevel(row)
		x.source.metrics.rows.Inc()
		own, size := cloned(row)
		w.rows = append(w.rows, own)
		return x.charge(int64(size))
	}
	if text := x.text(); text != "" {
		if err := x.source.client.query(ctx, x.account, kindSamples, text, each); err != nil {
			return err
		}
	}
	for i := range x.windows {
		w := &x.windows[i]
		if w.found {
			continue
		}
		if w.fresh = true; w.halvings == 0 && int64(len(w.rows)) < w.lines {
			return fmt.Errorf("%w: VictoriaLogs at %s has sent %d of the %d lines that it counted from %s to %s", model.ErrTransient,
				x.source.client.url, len(w.rows), w.lines, timeText(w.Min), timeText(w.Max))
		}
	}
	return nil
}

// text returns the request for the samples; "": there are no lines.
func (x *sampling) text() string {
	var by [mostHalvings + 1][]model.TimeRange
	most := 0
	for n := range by {
		if by[n] = x.holes(func(w *sampleWindow) bool { return !w.found && w.lines > 0 && w.halvings == n }); len(by[n]) > 0 {
			most = n
		}
	}
	parts := x.holes(func(w *sampleWindow) bool { return !w.found && w.lines > 0 })
	if len(parts) == 0 {
		return ""
	}
	text := x.in(parts)
	if most > 0 {
		// The names are not those of fields of lines.
		text += ` | hash(_msg) "shale 1" | hash(_time) "shale 2"` +
			` | math (("shale 1" % 1000003) * 31 + ("shale 2" % 1000003) * 17) % 1000003 as "shale 1"`
		var clauses []string
		for n, windows := range by {
			switch {
			case len(windows) == 0:
			case n == 0:
				clauses = append(clauses, anyTime(windows))
			default:
				clauses = append(clauses, `("shale 1":<`+strconv.Itoa(sampleHashes>>n)+" "+anyTime(windows)+")")
			}
		}
		text += " | filter " + strings.Join(clauses, " or ")
	}
	switch {
	case !x.streams:
		text += " | fields _time, _msg, " + strings.Join(levelFields, ", ")
	case most > 0:
		text += ` | delete _stream_id, "shale 1", "shale 2"`
	default:
		text += " | delete _stream_id"
	}
	return text
}

// levelFields are the fields of lines that may hold a level, as they are asked for. The first ones say what
// the level of a line is, whether they are of its stream or not.
var levelFields = func() (all []string) {
	names := slices.DeleteFunc(logs.LevelNames(), func(name string) bool { return strings.Contains(name, ".") })
	for _, name := range append(names, unclearLevels...) {
		if all = append(all, strconv.Quote(name)); strings.Contains(name, "_") {
			all = append(all, strconv.Quote(strings.ReplaceAll(name, "_", ".")), strconv.Quote(strings.ReplaceAll(name, "_", "-")))
		}
	}
	return all
}()

// unclearLevels are fields that are levels only as metadata.
var unclearLevels = []string{"detected_level", "severity_number"}

// knowsLevel reports whether the level of a line does not depend on which of its fields are those of its
// stream.
func knowsLevel(row []field) bool {
	n := 0
	for i := range row {
		switch name := strings.Map(underscored, string(row[i].name)); {
		case name == "_time", name == "_msg", len(row[i].value) == 0:
		case slices.Contains(unclearLevels, name):
			return false
		default:
			n++
		}
	}
	return n <= 1
}

func underscored(r rune) rune {
	if r == '.' || r == '-' {
		return '_'
	}
	return r
}
