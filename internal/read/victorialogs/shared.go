package victorialogs

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/klauspost/compress/zstd"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/watch"
)

// Counted rows are shared through the later tiers of the cache: they outlive the process, and the processes
// of a fleet have them in common. The name of a value has the request that it answers, and the counts and
// sums of the lines that it was counted from. So a value needs no notice of changes: other lines have another
// name.

const (
	// sharedVersion is in each name, and changes with the requests and the form of values.
	sharedVersion = 1
	// An extent has sharedBuckets buckets at least, and is not shorter than sharedTime.
	sharedBuckets = 4
	sharedTime    = int64(time.Hour)
	// maxExtents bounds the extents of a request. Beyond it nothing is shared.
	maxExtents = 256
	// maxHoles bounds the parts of a range that are asked for apart. Where there would be more, all of it is
	// asked for.
	maxHoles = 3
	// capturedBytes bounds the rows that a request holds to share them, and heldBytes those of all that wait
	// for their confirmation.
	capturedBytes = 4 << 20
	heldBytes     = 8 << 20
	// sharedRaw bounds a value before it was compressed.
	sharedRaw = 16 << 20
	// heldFor is how long rows wait for it.
	heldFor = int64(10 * time.Minute)
)

// shared is counted rows in the later tiers of the cache. It is safe for concurrent use.
type shared struct {
	tier   cache.Secondary
	result func(outcome string)

	mu    sync.Mutex
	held  []heldRows
	bytes int
}

// heldRows are rows that are offered once a sum that began after them shows that their lines are still those
// of the sum before them.
type heldRows struct {
	account      Account
	within       model.TimeRange
	stamp        string
	asked, ended int64 // by elapsed
	key          cache.Key
	value        []byte
	copies       bool // lines may be there twice
}

// extent is some buckets of a request, whatever its range.
type extent struct {
	model.TimeRange
	stamp   string
	settled bool // what is counted now may be shared
	key     cache.Key
	rows    [][]field // of a value that was found
	found   bool
	got     []byte // rows of a response
	twice   bool   // a row may have lines that are there twice
}

// extents cuts a range into extents. They begin before it where it begins with a bucket, and leave out the
// rest of its end.
func extents(r model.TimeRange, b buckets) []extent {
	if !b.counted || b.step <= 0 || r.Min <= 0 || r.Max > math.MaxInt64/2 || b.step > int64(1000*time.Hour) {
		return nil
	}
	width := b.step * max(sharedBuckets, (sharedTime+b.step-1)/b.step)
	first := floorDiv(r.Min-b.phase, width)
	if !b.begins(r.Min) {
		first++
	}
	end := floorDiv(r.Max+1-b.phase, width)
	if first*width+b.phase < 0 || end <= first || end-first > maxExtents {
		return nil
	}
	all := make([]extent, end-first)
	for i := range all {
		from := (first+int64(i))*width + b.phase
		all[i].TimeRange = model.TimeRange{Min: from, Max: from + width - 1}
	}
	return all
}

// ask asks for the cells of a range, or takes them from what is shared.
func (d *directory) ask(ctx context.Context, r model.TimeRange, b buckets) error {
	s := d.source.shared
	// A bucket that is divided again is asked for as it is: what an extent has before it is added already.
	if s == nil || d.req.Cells == nil || d.req.Cost.Fresh || r != d.req.Range {
		return d.askServer(ctx, r, b, nil)
	}
	all := extents(r, b)
	if len(all) == 0 || !d.stamp(ctx, all) {
		return d.askServer(ctx, r, b, nil)
	}
	d.name(all, b)
	charged := s.find(ctx, all, d.req.Quota)
	defer func() { _ = d.req.Quota.TakeBytes(-charged) }() // giving back does not fail
	d.check(all, b)
	asked := d.source.watch.Elapsed()
	size := 0
	take := func(row []field, c *cell) {
		i := (c.bucket - all[0].Min) / (all[0].Max - all[0].Min + 1)
		if c.bucket < all[0].Min || i >= int64(len(all)) || !all[i].settled || size > capturedBytes {
			return
		}
		x := &all[i]
		before := len(x.got)
		// Copies were looked for in the range of the request only.
		x.got, x.twice = appendRow(x.got, row), x.twice || !c.certain || c.Min < d.req.Range.Min
		size += len(x.got) - before
	}
	holes := holesOf(r, all)
	if len(holes) > maxHoles {
		for i := range all {
			all[i].found = false
		}
		holes = holesOf(r, all)
	}
	for i := range all {
		if err := d.addFound(&all[i], r, b); err != nil {
			return err
		}
	}
	for _, hole := range holes {
		if err := d.askServer(ctx, hole, b, take); err != nil {
			return err
		}
	}
	if b.groups != nil && b.groups.failed || size > capturedBytes {
		return nil
	}
	s.hold(d.account.Account, all, asked, d.source.watch.Elapsed())
	return nil
}

// stamp gives extents their stamps.
func (d *directory) stamp(ctx context.Context, all []extent) (some bool) {
	d.source.watch.Stamps(ctx, d.account.Account, len(all), func(i int) model.TimeRange { return all[i].TimeRange }, func(i int, s watch.Stamp) {
		all[i].stamp, all[i].settled, some = string(s.Text), s.Settled, true
	})
	return some
}

// name names the extents that have a stamp. The name has the request that counts the extent alone.
func (d *directory) name(all []extent, b buckets) {
	apart := *d
	apart.unproven, b.early = model.Always(), false
	for i := range all {
		x := &all[i]
		if x.stamp == "" {
			continue
		}
		text := fmt.Sprintf("%d %v %q %s\n%x", sharedVersion, d.account.Account, d.account.filter, apart.statistics(x.TimeRange, b, false), x.stamp)
		x.key = cache.Key{Object: d.source.client.url, Kind: cache.Counts, Digest: cache.DigestOf([]byte(text))}
	}
}

// holesOf returns the parts of a range that were not found.
func holesOf(r model.TimeRange, all []extent) (holes []model.TimeRange) {
	add := func(p model.TimeRange) {
		switch n := len(holes); {
		case p.Min > p.Max:
		case n > 0 && holes[n-1].Max+1 == p.Min:
			holes[n-1].Max = p.Max
		default:
			holes = append(holes, p)
		}
	}
	add(model.TimeRange{Min: r.Min, Max: all[0].Min - 1})
	for i := range all {
		if !all[i].found {
			add(all[i].TimeRange)
		}
	}
	add(model.TimeRange{Min: all[len(all)-1].Max + 1, Max: r.Max})
	return holes
}

// check takes values for missing whose rows are not those of their extent.
func (d *directory) check(all []extent, b buckets) {
	for i := range all {
		x := &all[i]
		for _, row := range x.rows {
			if c, ok := parseCell(row, x.TimeRange, b, d.sized(), looksNowhere); !ok || !b.begins(c.bucket) || !x.Contains(c.bucket) {
				d.source.shared.result("damaged")
				x.found, x.rows = false, nil
				break
			}
		}
	}
}

// addFound adds the cells of rows that are shared. No line of them is there twice.
func (d *directory) addFound(x *extent, r model.TimeRange, b buckets) error {
	if !x.found {
		return nil
	}
	for _, row := range x.rows {
		c, _ := parseCell(row, x.TimeRange, b, d.sized(), looksNowhere)
		if c.Max < r.Min {
			continue
		}
		if err := d.add(row, c, b); err != nil {
			return err
		}
	}
	return nil
}

// find looks for the extents that have a name. It returns what their rows have taken of a quota. Values
// beyond it count as missing.
func (s *shared) find(ctx context.Context, all []extent, q *model.Quota) (charged int64) {
	var keys []cache.Key
	var places []int
	for i := range all {
		if all[i].stamp != "" {
			keys, places = append(keys, all[i].key), append(places, i)
		}
	}
	found := make([]cache.Found, len(keys))
	s.tier.GetMany(ctx, keys, cache.Asker{}, found)
	for i, f := range found {
		x := &all[places[i]]
		if f.From == cache.Nowhere {
			s.result("miss")
			continue
		}
		var size int64
		if x.rows, size, x.found = parseRows(f.Value, x.key.Digest); !x.found {
			s.result("damaged")
			continue
		}
		if q.TakeBytes(size) != nil {
			x.rows, x.found = nil, false
			s.result("miss")
			continue
		}
		charged += size
		s.result("hit")
	}
	return charged
}

// hold keeps the rows of extents until they are confirmed.
func (s *shared) hold(a Account, all []extent, asked, ended int64) {
	for i := range all {
		x := &all[i]
		if x.found || !x.settled || x.twice {
			continue
		}
		if !s.holds(x.key) {
			value := packer.EncodeAll(append(x.key.Digest[:], x.got...), nil)
			s.add(heldRows{account: a, within: x.TimeRange, stamp: x.stamp, asked: asked, ended: ended, key: x.key, value: value})
		}
	}
}

func (s *shared) holds(k cache.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.held, func(h heldRows) bool { return h.key == k })
}

func (s *shared) add(h heldRows) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Another query may have added the same meanwhile.
	if s.bytes+len(h.value)+len(h.stamp) <= heldBytes && !slices.ContainsFunc(s.held, func(o heldRows) bool { return o.key == h.key }) {
		s.held = append(s.held, h)
		s.bytes += len(h.value) + len(h.stamp)
	}
}

// summed offers the rows of an account that a sum which began after them has confirmed, and drops those that
// it has not. The lock of the watch is held.
func (s *shared) summed(a Account, l *watch.Ledger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = slices.DeleteFunc(s.held, func(h heldRows) bool {
		now, ok := watch.Stamp{}, false
		if h.account == a {
			now, ok = l.Stamp(h.within)
		}
		waits := h.ended >= l.Began() || !now.Unique && !h.copies
		if waits && l.Began()-h.ended < heldFor {
			return false
		}
		s.bytes -= len(h.value) + len(h.stamp)
		if waits || !ok || !now.Settled || now.Changed >= h.asked || string(now.Text) != h.stamp {
			s.result("changed")
			return true
		}
		// A tier may keep only what two queries want. A dashboard wants these rows again.
		s.tier.Offer(h.key, cache.Asker{Query: 1}, h.value)
		s.tier.Offer(h.key, cache.Asker{Query: 2}, h.value)
		s.result("kept")
		return true
	})
}

// Values are small and many, and one goroutine makes or reads each.
var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(sharedRaw))
)

// appendRow appends a row: the number of its fields, and for each the lengths of its name and its value, and
// both.
func appendRow(b []byte, row []field) []byte {
	b = binary.AppendUvarint(b, uint64(len(row)))
	for _, f := range row {
		b = binary.AppendUvarint(b, uint64(len(f.name)))
		b = binary.AppendUvarint(b, uint64(len(f.value)))
		b = append(append(b, f.name...), f.value...)
	}
	return b
}

// parseRows returns the rows of a value, which begins with the digest in its name. ok is false if it is not
// that value.
func parseRows(value []byte, digest cache.Digest) (rows [][]field, size int64, ok bool) {
	b, err := unpacker.DecodeAll(value, nil)
	if err != nil || len(b) < len(digest) || cache.Digest(b[:len(digest)]) != digest {
		return nil, 0, false
	}
	size, b = int64(len(b)), b[len(digest):]
	number := func() int {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > uint64(len(b)) {
			ok = false
			return 0
		}
		b = b[n:]
		return int(v)
	}
	for ok = true; ok && len(b) > 0; {
		n := number()
		if n > maxFields {
			return nil, 0, false
		}
		size += int64(unsafe.Sizeof([]field{})) + int64(n)*int64(unsafe.Sizeof(field{}))
		row := make([]field, 0, n)
		for i := 0; i < n && ok; i++ {
			name, size := number(), number()
			if !ok || name+size > len(b) {
				return nil, 0, false
			}
			row = append(row, field{b[:name:name], b[name : name+size : name+size]})
			b = b[name+size:]
		}
		rows = append(rows, row)
	}
	return rows, size, ok
}
