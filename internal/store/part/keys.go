package part

import (
	"context"
	"encoding/binary"
	"sort"

	"github.com/shaledb/shale/internal/model"
)

// maxPageKeys bounds the keys of a page: 64 KiB of at least 9 bytes each, and room.
const maxPageKeys = 1 << 13

// keyPage collects the keys of consecutive ranks of one tenant. Of a key the upper half, in which neighbours lie close,
// is stored as the difference to the one before; the lower half is a hash and stored as it is. Compressing this was
// tried: it saves nothing worth its time. Each restartRanks keys an upper half stands whole, which takes a byte and a half of
// a hundred: a query that wants one key of a page decodes 64, not 8,192.
type keyPage struct {
	rank0    uint32
	first    model.Key
	last     model.Key
	count    int
	restarts []byte // upper halves that are whole, each with the end of the differences behind it
	his      []byte
	los      []byte
}

// restartBytes is the size of a restart: 8 of the upper half, 4 of the end.
const restartBytes = 12

func (p *keyPage) add(rank uint32, k model.Key) {
	if p.count == 0 {
		p.rank0, p.first = rank, k
		p.restarts, p.his, p.los = p.restarts[:0], p.his[:0], p.los[:0]
	}
	if p.count%restartRanks == 0 {
		p.restarts = append(binary.BigEndian.AppendUint64(p.restarts, k.Hi), 0, 0, 0, 0)
	} else {
		p.his = binary.AppendUvarint(p.his, k.Hi-p.last.Hi)
	}
	binary.LittleEndian.PutUint32(p.restarts[len(p.restarts)-4:], uint32(len(p.his)))
	p.los = binary.LittleEndian.AppendUint64(p.los, k.Lo)
	p.last = k
	p.count++
}

func (p *keyPage) full(size int) bool {
	return p.count >= maxPageKeys || len(p.restarts)+len(p.his)+len(p.los) >= size
}

// payload appends: first rank, number, restarts, differences, lower halves.
func (p *keyPage) payload(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(p.rank0))
	dst = binary.AppendUvarint(dst, uint64(p.count))
	return append(append(append(dst, p.restarts...), p.his...), p.los...)
}

// keyDir is a page of keys, of which the keys of one restart are decoded at a time.
type keyDir struct {
	rank0    uint32
	count    int // 0: no page
	restarts []byte
	diffs    []byte
	los      []byte

	group int // that is decoded into his; -1: none
	his   [restartRanks]uint64
	// past is where find goes on in the decoded restart. Of the restart probed, which is not decoded, probes keys were sought.
	past, probed, probes int
}

func (d *keyDir) open(payload []byte) error {
	s := scan{b: payload}
	d.group, d.count, d.probed = -1, 0, -1
	d.rank0 = uint32(s.below(1<<32 - 1))
	n := s.below(maxPageKeys)
	d.restarts = s.take(restartBytes * uint64((n+restartRanks-1)/restartRanks))
	if s.bad || n == 0 {
		return corrupt("page of keys: no header")
	}
	d.diffs = s.take(uint64(binary.LittleEndian.Uint32(d.restarts[len(d.restarts)-4:])))
	d.los = s.take(8 * uint64(n))
	if err := s.end("page of keys"); err != nil {
		return err
	}
	d.count = n
	return nil
}

// first returns the first key of a restart.
func (d *keyDir) first(group int) model.Key {
	return model.Key{Hi: binary.BigEndian.Uint64(d.restarts[restartBytes*group:]), Lo: d.lo(restartRanks * group)}
}

func (d *keyDir) lo(i int) uint64 { return binary.LittleEndian.Uint64(d.los[8*i:]) }

// diffsEnd returns where the differences end that follow a restart.
func (d *keyDir) diffsEnd(group int) uint32 {
	if group < 0 {
		return 0
	}
	return binary.LittleEndian.Uint32(d.restarts[restartBytes*group+8:])
}

// load decodes the restart of the i-th key, which the page has. To decode it as far as a key that is sought was tried: of a query for
// one series of 90 it saves nothing that can be measured.
func (d *keyDir) load(i int) error {
	g := i / restartRanks
	if d.group == g {
		return nil
	}
	d.group = -1
	n := min(d.count-g*restartRanks, restartRanks)
	from, to := d.diffsEnd(g-1), d.diffsEnd(g)
	if from > to || int(to) > len(d.diffs) {
		return corrupt("page of keys: differences end at %d and begin at %d", to, from)
	}
	d.his[0] = d.first(g).Hi
	if rest, bad := sumUvarints(d.his[:n], d.diffs[from:to]); bad || len(rest) > 0 {
		return corrupt("page of keys: differences behind rank %d", int(d.rank0)+g*restartRanks)
	}
	d.group, d.past = g, g*restartRanks
	return nil
}

// at returns the i-th key, which has been loaded.
func (d *keyDir) at(i int) model.Key { return model.Key{Hi: d.his[i%restartRanks], Lo: d.lo(i)} }

// beyond reports whether a restart begins with a greater key. The lower half lies elsewhere, and seldom counts.
func (d *keyDir) beyond(group int, k model.Key) bool {
	hi := binary.BigEndian.Uint64(d.restarts[restartBytes*group:])
	return hi > k.Hi || hi == k.Hi && d.lo(restartRanks*group) > k.Lo
}

// groupOf returns the last restart that is not beyond a key, -1 if all are. Who seeks keys in order is mostly beyond the restart near,
// and not far.
func (d *keyDir) groupOf(k model.Key, near int) int {
	lo, step := 0, 1
	if near > 0 && !d.beyond(near, k) {
		lo = near
	}
	n := len(d.restarts) / restartBytes
	for lo+step < n && !d.beyond(lo+step, k) {
		lo, step = lo+step, 2*step
	}
	return lo + sort.Search(min(step, n-lo), func(i int) bool { return d.beyond(lo+i, k) }) - 1
}

// seek returns the index of the first key that is not less than k.
func (d *keyDir) seek(k model.Key) (int, error) {
	g := d.groupOf(k, d.group)
	if g < 0 {
		return 0, nil
	}
	i := g * restartRanks
	if err := d.load(i); err != nil {
		return 0, err
	}
	return i + sort.Search(min(d.count-i, restartRanks), func(n int) bool { return !d.at(i + n).Less(k) }), nil
}

// fewProbes is the number of the key, of those that are sought in a restart, for which it is decoded. Those who ask for one of many keys
// in each of several parts miss mostly: to decode all, and to search in them, took an eighth of the time of their query.
const fewProbes = 4

// find returns the index of a key, -1 if the page does not have it, and the restart in which it would be. Keys that are sought
// ascend. The lower halves stand whole, and hardly two are alike: who misses need not decode the upper ones.
func (d *keyDir) find(k model.Key) (i, group int, err error) {
	g := d.groupOf(k, max(d.group, d.probed))
	if g < 0 {
		return -1, g, nil
	}
	begin, end := g*restartRanks, min((g+1)*restartRanks, d.count)
	if d.group != g {
		if d.probed != g {
			d.probed, d.probes = g, 0
		}
		if d.probes++; d.probes < fewProbes && !hasLo(d.los[8*begin:8*end], k.Lo) {
			return -1, g, nil
		}
		if err := d.load(begin); err != nil {
			return -1, g, err
		}
	}
	for i = d.past; i < end && d.at(i).Less(k); i++ {
	}
	if d.past = i; i == end || d.at(i) != k {
		i = -1
	}
	return i, g, nil
}

// nearKeys is how many of the keys that follow are looked at before a key is searched. Who wants all series of a metric asks for one
// of a part's keys after the other, or for those that lie between two of them: searching each took a sixth of such a query.
const nearKeys = 4

// near looks for a key, greater than those before, among the next of the restart that is decoded. It returns the index, -1 if the page
// does not have it, and whether that is known.
func (d *keyDir) near(k model.Key) (i int, known bool) {
	if d.group < 0 || d.beyond(d.group, k) { // another may have decoded it meanwhile
		return -1, false
	}
	end := min(d.past+nearKeys, (d.group+1)*restartRanks, d.count)
	for ; d.past < end; d.past++ {
		if at := d.at(d.past); !at.Less(k) {
			if at == k {
				return d.past, true
			}
			return -1, true
		}
	}
	return -1, false
}

// hasLo reports whether one of the lower halves is lo.
func hasLo(los []byte, lo uint64) bool {
	for ; len(los) >= 32; los = los[32:] {
		if binary.LittleEndian.Uint64(los) == lo || binary.LittleEndian.Uint64(los[8:]) == lo ||
			binary.LittleEndian.Uint64(los[16:]) == lo || binary.LittleEndian.Uint64(los[24:]) == lo {
			return true
		}
	}
	for ; len(los) > 0; los = los[8:] {
		if binary.LittleEndian.Uint64(los) == lo {
			return true
		}
	}
	return false
}

// sumUvarints sets each number but the first to the one before and a uvarint of b, and returns the rest of b. Numbers of three and
// four bytes, which most differences of hashes are, are taken as one word. A word for any length, without branches, was tried: where
// a number begins then waits for the one before, and that takes longer.
func sumUvarints(sums []uint64, b []byte) (rest []byte, bad bool) {
	sum := sums[0]
	for i := 1; i < len(sums); i++ {
		var delta uint64
		n := 0
		if len(b) >= 4 {
			w := binary.LittleEndian.Uint32(b)
			switch w & 0x80808080 {
			case 0x00808080:
				delta, n = uint64(w&0x7f|w>>1&(0x7f<<7)|w>>2&(0x7f<<14)|w>>3&(0x7f<<21)), 4
			case 0x00008080, 0x80008080:
				delta, n = uint64(w&0x7f|w>>1&(0x7f<<7)|w>>2&(0x7f<<14)), 3
			}
		}
		if n == 0 {
			if delta, n = binary.Uvarint(b); n <= 0 {
				return nil, true
			}
		}
		if sum+delta < sum {
			return nil, true
		}
		sum += delta
		sums[i], b = sum, b[n:]
	}
	return b, false
}

// Keys walks the keys of a tenant in order. Before the first Next, SeekGE or Find the cursor stands on no key.
func (r *Reader) Keys(ctx context.Context, tenant string) *KeyCursor {
	c := &KeyCursor{pages: rankWalk{ctx: ctx, r: r, section: keySection}}
	if t := r.Meta().Tenant(tenant); t != nil {
		c.walk(t)
	}
	return c
}

// Enter puts the cursor before the first key of another tenant, and reports whether the part has it. What the cursor has
// open stays: many small tenants share a page of the index, and a cursor for each of them would read it for each.
func (c *KeyCursor) Enter(tenant string) bool {
	t := c.pages.r.Meta().Tenant(tenant)
	if t == nil {
		t = &Tenant{}
	}
	c.walk(t)
	return t.Series > 0
}

// walk makes the cursor begin with a tenant.
func (c *KeyCursor) walk(t *Tenant) {
	c.begin, c.end = t.Rank0, t.Rank0+t.Series
	c.next = c.begin
	c.dir.group, c.dir.probed = -1, -1 // Find begins anew, too
}

// KeyCursor walks the keys of one tenant in order.
type KeyCursor struct {
	pages      rankWalk
	begin, end uint32 // ranks of the tenant
	next       uint32
	dir        keyDir
	off        int64 // of the page in dir
	err        error
}

// Next moves to the next key. It returns false at the end or on an error.
func (c *KeyCursor) Next() bool {
	if c.err != nil || c.next >= c.end {
		c.next = c.end + 1
		return false
	}
	if c.err = c.load(c.next); c.err != nil {
		return false
	}
	if err := c.dir.load(int(c.next - c.dir.rank0)); err != nil {
		c.err = c.placed(err)
		return false
	}
	c.next++
	return true
}

// Seek moves to a rank of the tenant.
func (c *KeyCursor) Seek(rank uint32) bool {
	if c.err != nil || rank < c.begin || rank >= c.end {
		c.next = c.end + 1
		return false
	}
	c.next = rank
	return c.Next()
}

// load opens the page that has a rank, unless it is the one at hand.
func (c *KeyCursor) load(rank uint32) error {
	if n := uint32(c.dir.count); n > 0 && rank >= c.dir.rank0 && rank-c.dir.rank0 < n {
		return nil
	}
	e, err := c.pages.seek(rank)
	if err != nil {
		return err
	}
	return c.open(e)
}

// placed says at which page an error is.
func (c *KeyCursor) placed(err error) error { return at(&pageEntry{addr: Addr{Off: c.off}}, err) }

func (c *KeyCursor) open(e *pageEntry) error {
	c.dir.count, c.off = 0, e.addr.Off
	payload, err := c.pages.load(e)
	if err != nil {
		return err
	}
	if err := c.dir.open(payload); err != nil {
		return at(e, err)
	}
	if c.dir.rank0 != e.rank0 || uint32(c.dir.count) != e.ranks || c.dir.first(0) != e.key {
		c.dir.count = 0
		return at(e, corrupt("page of keys is not the one that the index names"))
	}
	return nil
}

// SeekGE moves to the first key that is not less than k, wherever the cursor stands. It returns false if there is none,
// or on an error.
func (c *KeyCursor) SeekGE(k model.Key) bool {
	if c.err != nil || c.begin == c.end {
		return false
	}
	// Keys that are sought in order mostly lie in the page at hand.
	i := c.dir.count
	if c.holds(k) {
		i = c.place(k)
	}
	if i == c.dir.count && c.err == nil {
		var e *pageEntry
		if e, c.err = c.pages.seekKey(c.begin, c.end, k); c.err != nil {
			return false
		}
		if c.err = c.load(e.rank0); c.err != nil {
			return false
		}
		i = c.place(k)
	}
	c.next = c.dir.rank0 + uint32(i)
	return c.Next()
}

// Find moves to a key, and reports whether the tenant has it. Keys that are sought ascend. Where it returns false the cursor stands on
// no key.
func (c *KeyCursor) Find(k model.Key) bool {
	if c.err != nil || c.begin == c.end {
		return false
	}
	d := &c.dir
	own := c.own()
	if own {
		if i, known := d.near(k); known {
			if i >= 0 {
				c.next = d.rank0 + uint32(i) + 1
			}
			return i >= 0
		}
	}
	if (!own || d.beyond(0, k) && d.rank0 > c.begin) && !c.turn(k) {
		return false
	}
	for {
		i, group, err := d.find(k)
		if err != nil {
			c.err = c.placed(err)
			return false
		}
		if i >= 0 {
			c.next = d.rank0 + uint32(i) + 1
			return true
		}
		// Behind the last restart another page may go on.
		if (group+1)*restartRanks < d.count || d.rank0+uint32(d.count) == c.end || !c.turn(k) {
			return false
		}
	}
}

// turn opens the page in which a key would be. It reports whether that is another one than was open: told by where it is, since what an
// index says of ranks may be forged.
func (c *KeyCursor) turn(k model.Key) bool {
	e, err := c.pages.seekKey(c.begin, c.end, k)
	if c.err = err; err != nil || c.own() && e.addr.Off == c.off {
		return false
	}
	if c.err = c.open(e); c.err == nil && !c.own() {
		c.err = c.placed(corrupt("page of keys is of more than one tenant"))
	}
	return c.err == nil
}

// own reports whether the page at hand is one of the tenant's.
func (c *KeyCursor) own() bool {
	d := &c.dir
	return d.count > 0 && d.rank0 >= c.begin && uint64(d.rank0)+uint64(d.count) <= uint64(c.end)
}

// holds reports whether the page at hand is one of the tenant's and begins no later than a key.
func (c *KeyCursor) holds(k model.Key) bool { return c.own() && !c.dir.beyond(0, k) }

// place returns where in the page at hand the first key is that is not less than k.
func (c *KeyCursor) place(k model.Key) int {
	i, err := c.dir.seek(k)
	if err != nil {
		c.err = c.placed(err)
	}
	return i
}

// Key returns the key at the cursor.
func (c *KeyCursor) Key() model.Key { return c.dir.at(int(c.next - 1 - c.dir.rank0)) }

// Rank returns the rank of the key at the cursor.
func (c *KeyCursor) Rank() uint32 { return c.next - 1 }

// Err returns the error that ended the walk, if any.
func (c *KeyCursor) Err() error { return c.err }
