package victorialogs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/rfc3339"
)

// cell is the lines of a stream in one bucket of time.
type cell struct {
	*stream
	model.TimeRange       // the times of its first and its last line
	bucket          int64 // the beginning of the bucket
	rows, bytes     int64 // with lines that are there twice
	// certain says that no two lines have the same time, so that no line is there twice.
	certain bool
}

const (
	// cellBytes is about what a cell takes in memory, with its chunk.
	cellBytes = 250
	// A range is divided into linesBuckets buckets, of leastBucket at least, and a bucket with more than
	// denseRows lines is divided again: a page has the lines of one bucket at least.
	linesBuckets = 64
	leastBucket  = time.Millisecond
	denseRows    = 50_000
	// denseCounted is the bound where most pages are counted without being read.
	denseCounted = 500_000
	// maxCells bounds the buckets of a range in which lines are counted. Beyond it lines are read.
	maxCells = 20_000
)

// directory is what VictoriaLogs has of a request.
type directory struct {
	source  *Source
	account access
	req     *model.Request
	filter  filter
	streams *streamSet
	cells   []cell
	// unproven is where lines may be there twice. Elsewhere it is known that none is.
	unproven model.TimeRange
	taken    int64 // from the quota, for the cells
	plain    bool  // rows are not packed
}

// buckets are how a range is divided: at times that are phase more than a multiple of step. Step 0 means that
// it is not divided.
type buckets struct {
	step, phase int64
	// counted says that each bucket is within a cell of the request. It is then as good as the times of its
	// first and its last line, and finding those takes VictoriaLogs longer than counting.
	counted bool
	// groups, if set, divide streams. early says that lines are counted by groups at once, and not by streams
	// first.
	groups *grouping
	early  bool
}

// begins reports whether a bucket may begin at a time.
func (b buckets) begins(t int64) bool { return b.step == 0 || floorMod(t, b.step) == b.phase }

func floorMod(a, b int64) int64 {
	if a %= b; a < 0 {
		a += b
	}
	return a
}

func floorDiv(a, b int64) int64 { return (a - floorMod(a, b)) / b }

// dividing returns the buckets for a range in which lines are read.
func dividing(r model.TimeRange) buckets {
	width := uint64(r.Max) - uint64(r.Min)
	if width < uint64(leastBucket) {
		return buckets{}
	}
	return buckets{step: rounded(max(width/linesBuckets+1, uint64(leastBucket)))}
}

// rounded rounds a width up to whole units, since VictoriaLogs reads durations as floating-point numbers.
func rounded(width uint64) int64 {
	for _, unit := range []time.Duration{time.Hour, time.Second, time.Millisecond} {
		if u := uint64(unit); width >= u {
			return int64((width + u - 1) / u * u)
		}
	}
	return int64(width)
}

// counting returns the buckets for a range in which lines are counted, cell by cell.
func counting(r model.TimeRange, c *model.TextCells) buckets {
	switch {
	case c.Step <= 0: // all of time is one cell
		return buckets{counted: true}
	case (uint64(r.Max)-uint64(r.Min))/uint64(c.Step) > maxCells:
		return dividing(r)
	}
	return buckets{step: c.Step, phase: floorMod(floorMod(c.Phase, c.Step)+1, c.Step), counted: true}
}

// read gathers the cells of a range.
func (d *directory) read(ctx context.Context, r model.TimeRange, b buckets) error {
	from := len(d.cells)
	if err := d.ask(ctx, r, b); err != nil {
		return err
	}
	added := d.cells[from:]
	slices.SortFunc(added, func(x, y cell) int { return cmp.Or(cmp.Compare(x.bucket, y.bucket), x.Key.Compare(y.Key)) })
	added = joined(added)
	d.cells = d.cells[:from]
	var again []model.TimeRange
	for i := 0; i < len(added); {
		n, rows, within, certain := i, int64(0), added[i].TimeRange, true
		for ; n < len(added) && added[n].bucket == added[i].bucket; n++ {
			rows, certain = rows+added[n].rows, certain && added[n].certain
			within = model.TimeRange{Min: min(within.Min, added[n].Min), Max: max(within.Max, added[n].Max)}
		}
		if next := dividing(within); rows > d.dense(b, certain) && next.step > 0 && (b.step == 0 || next.step < b.step) {
			again = append(again, within)
		} else {
			d.cells = append(d.cells, added[i:n]...) // to the left of where it is
		}
		i = n
	}
	for _, r := range again {
		next := dividing(r)
		next.counted = b.counted // it is within a bucket
		if err := d.read(ctx, r, next); err != nil {
			return err
		}
	}
	return nil
}

// dense returns how many lines a bucket has at most that is not divided again.
func (d *directory) dense(b buckets, certain bool) int64 {
	switch {
	case d.req.Cells == nil:
		return denseRows
	case b.counted && certain: // no line of it is read
		return math.MaxInt64
	case b.counted && b.step == 0: // all of its lines are
		return pageRows
	}
	return denseCounted
}

// joined makes one cell of those of one stream in one bucket, which are of several streams of VictoriaLogs.
func joined(cells []cell) []cell {
	out := cells[:0]
	for _, c := range cells {
		if n := len(out); n > 0 && out[n-1].stream == c.stream && out[n-1].bucket == c.bucket {
			o := &out[n-1]
			o.rows, o.bytes, o.certain = o.rows+c.rows, o.bytes+c.bytes, false
			o.TimeRange = model.TimeRange{Min: min(o.Min, c.Min), Max: max(o.Max, c.Max)}
			continue
		}
		out = append(out, c)
	}
	return out
}

// askServer asks for the cells of a range. An offset of buckets is added in some versions and subtracted in
// others: the first response tells.
func (d *directory) askServer(ctx context.Context, r model.TimeRange, b buckets, take func(row []field, c *cell)) error {
	from := len(d.cells)
	for second := false; ; second = true {
		added := d.source.addsOffset.Load()
		packed := d.packs(r, b)
		wrong, err := d.askOnce(ctx, r, b, added, take)
		if packed && errors.Is(err, model.ErrInvalid) { // an old server, perhaps
			d.plain = true
			if wrong, err = d.askOnce(ctx, r, b, added, take); err == nil {
				err = d.refuse(ctx, formPacked, kindDirectory, packedProbe)
			}
		}
		if err != nil || !wrong {
			return err
		}
		if second {
			return fmt.Errorf("%w: VictoriaLogs at %s does not divide time as it was asked to", model.ErrCorrupt, d.source.client.url)
		}
		d.source.addsOffset.CompareAndSwap(added, !added)
		d.cells = d.cells[:from]
	}
}

// sized reports whether the sizes of lines are wanted. VictoriaLogs reads the lines for them, so that they
// are estimated where lines are read later.
func (d *directory) sized() bool { return d.req.Cells != nil && d.req.Cells.Bytes }

// statistics returns what counts the lines of each stream, or group of streams, in each bucket of a range.
func (d *directory) statistics(r model.TimeRange, b buckets, addsOffset bool) string {
	step, phase, looks := b.step, b.phase, d.looks(r)
	inParts := step == 0 && b.counted && (looks == looksEverywhere || looks == looksPartly && d.looksAtMuch(r))
	if inParts {
		// Lines are added up after they were counted in parts of the range: sets of few times take less to make.
		step = dividing(r).step
	}
	text, whose, times := d.filter.in(r), []string{"_stream"}, "_time"
	if b.early {
		text, whose, times = text+b.groups.pipes(), b.groups.names(), "_stream_id, _time"
	}
	by := slices.Clip(whose)
	if step > 0 {
		bucket := "_time:" + strconv.FormatInt(step, 10) + "ns"
		switch {
		case phase == 0:
		case addsOffset:
			bucket += " offset " + strconv.FormatInt(phase, 10) + "ns"
		default:
			bucket += " offset -" + strconv.FormatInt(phase, 10) + "ns"
		}
		by = append(by, bucket)
	}
	text += " | stats by (" + strings.Join(by, ", ") + ") count() n"
	if !b.counted {
		text += ", min(_time) lo, max(_time) hi"
	}
	switch {
	case d.req.Cells == nil || looks == looksNowhere:
	case looks == looksPartly:
		within := " if (" + timeFilter(d.unproven) + ")"
		text += ", count_uniq(" + times + ")" + within + " times, count()" + within + " recent"
	default:
		text += ", count_uniq(" + times + ") times"
	}
	if d.sized() {
		text += ", sum_len(_msg) bytes"
	}
	if !inParts && (b.groups == nil || b.early) {
		return text + d.packed(r, b, whose)
	}
	if whose = []string{"_stream"}; b.groups != nil {
		text += b.groups.pipes()
		whose = b.groups.names()
	}
	if by = slices.Clip(whose); b.step > 0 {
		by = append(by, "_time")
	}
	text += " | stats"
	if len(by) > 0 {
		text += " by (" + strings.Join(by, ", ") + ")"
	}
	text += " sum(n) n"
	if d.req.Cells != nil && looks != looksNowhere {
		text += ", sum(times) times"
	}
	if d.req.Cells != nil && looks == looksPartly {
		text += ", sum(recent) recent"
	}
	if d.sized() {
		text += ", sum(bytes) bytes"
	}
	return text + d.packed(r, b, whose)
}

// packed returns the pipes that pack the rows of streams or groups, if they are packed.
func (d *directory) packed(r model.TimeRange, b buckets, whose []string) string {
	if !d.packs(r, b) {
		return ""
	}
	return packing(whose, d.columns(r))
}

// columns returns the fields of the rows of a range that differ among the buckets of a stream.
func (d *directory) columns(r model.TimeRange) []string {
	all := []string{"_time", "n"}
	if looks := d.looks(r); looks != looksNowhere {
		if all = append(all, "times"); looks == looksPartly {
			all = append(all, "recent")
		}
	}
	if d.sized() {
		all = append(all, "bytes")
	}
	return all
}

// looking says in which part of a range a count looks for lines that are there twice.
type looking uint8

const (
	looksEverywhere looking = iota
	looksPartly
	looksNowhere
)

// looksAtMuch reports whether much of a range must be looked at for lines that are there twice.
func (d *directory) looksAtMuch(r model.TimeRange) bool {
	from, to := max(r.Min, d.unproven.Min), min(r.Max, d.unproven.Max)
	return uint64(to)-uint64(from) > (uint64(r.Max)-uint64(r.Min))/8
}

func (d *directory) looks(r model.TimeRange) looking {
	switch u := d.unproven; {
	case d.req.Cells == nil, u.Min <= r.Min && u.Max >= r.Max:
		return looksEverywhere
	case u.Overlaps(r):
		return looksPartly
	}
	return looksNowhere
}

// askOnce sends a request. take, if it is set, is handed all rows that have a cell.
func (d *directory) askOnce(ctx context.Context, r model.TimeRange, b buckets, addsOffset bool, take func(row []field, c *cell)) (wrong bool, err error) {
	sized, looks := d.sized(), d.looks(r)
	err = d.source.flights.query(ctx, d, r, b, addsOffset, unpacked(d.columns(r), func(row []field) error {
		if wrong {
			return nil
		}
		c, ok := parseCell(row, r, b, sized, looks)
		if !ok {
			return fmt.Errorf("%w: VictoriaLogs at %s has sent a row of statistics that is not one: %s", model.ErrCorrupt, d.source.client.url, rowText(row))
		}
		if !b.begins(c.bucket) {
			wrong = true
			return nil
		}
		if take != nil {
			take(row, &c)
		}
		if b.counted && c.Max < d.req.Range.Min {
			return nil // an extent begins before the range
		}
		return d.add(row, c, b)
	}))
	return wrong, err
}

// add adds the cell of a row, unless the request does not want its stream.
func (d *directory) add(row []field, c cell, b buckets) (err error) {
	spelling := valueOf(row, "_stream")
	if g := b.groups; g != nil {
		var ok bool
		if spelling, ok = g.of(row); !ok {
			g.failed = true
			return nil
		}
	}
	if c.stream, err = d.streams.add(spelling); c.stream == nil || err != nil {
		return err
	}
	if from := hides(d.req, c.Labels); c.Min < from {
		if c.Max < from {
			return nil
		}
		c.Min, c.certain = from, false
	}
	if !d.sized() {
		c.bytes = c.rows * d.source.lineBytes.Load()
	}
	if err := d.req.Quota.TakeBytes(cellBytes); err != nil {
		return err
	}
	d.taken += cellBytes
	d.cells = append(d.cells, c)
	return nil
}

// parseCell reads a row of statistics of a range.
func parseCell(row []field, r model.TimeRange, b buckets, sized bool, looks looking) (c cell, ok bool) {
	number := func(name string, n *int64) bool {
		v, err := strconv.ParseInt(string(valueOf(row, name)), 10, 64)
		*n = v
		return err == nil && v >= 0
	}
	if !number("n", &c.rows) || c.rows == 0 {
		return c, false
	}
	if sized && !number("bytes", &c.bytes) {
		return c, false
	}
	var times, recent int64
	switch looks {
	case looksNowhere:
		c.certain = true
	case looksPartly:
		c.certain = number("times", &times) && number("recent", &recent) && times == recent
	default:
		c.certain = number("times", &times) && times == c.rows
	}
	if b.step > 0 {
		if c.bucket, ok = rfc3339.Parse(valueOf(row, "_time")); !ok {
			return c, false
		}
	}
	if b.counted {
		if c.TimeRange = r; b.step > 0 {
			c.Min = max(r.Min, c.bucket)
			if last := c.bucket + (b.step - 1); last >= c.bucket { // the last bucket of all ends with time
				c.Max = min(r.Max, last)
			}
		}
		return c, c.Min <= c.Max || !b.begins(c.bucket)
	}
	if c.Min, ok = rfc3339.Parse(valueOf(row, "lo")); !ok {
		return c, false
	}
	c.Max, ok = rfc3339.Parse(valueOf(row, "hi"))
	return c, ok && c.Max >= c.Min
}

// rowText shows a row in an error.
func rowText(row []field) string {
	text := ""
	for _, f := range row {
		text += fmt.Sprintf("%.40q:%.80q ", f.name, f.value)
	}
	return text[:min(len(text), maxErrorBytes)]
}

// forget gives up what was found.
func (d *directory) forget() {
	d.release()
	d.streams = newStreamSet(d.source, d.req)
}

func (d *directory) release() {
	d.streams.release()
	_ = d.req.Quota.TakeBytes(-d.taken) // giving back does not fail
	d.cells, d.taken = nil, 0
}
