package series

import (
	"encoding/binary"
	"sort"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// KeySection holds the keys of all series.
var KeySection = &file.Section{Number: 0, Kind: 0, Name: "keys", Form: file.KeyEntries, Needed: func(*file.Meta) bool { return true }}

// maxPageKeys bounds the keys of a page: 64 KiB of at least 9 bytes each, and room.
const maxPageKeys = 1 << 13

// keyPage collects the keys of consecutive ranks of one tenant. The upper half of a key, in which neighbours
// are close, is stored as the difference to the one before. The lower half is a hash and stored as it is.
// Compressing it was tried and is not worth its time. Every restartRanks keys, an upper half is stored whole,
// so that a query for one key of a page decodes 64 keys, not 8,192.
type keyPage struct {
	rank0    uint32
	first    model.Key
	last     model.Key
	count    int
	restarts []byte // upper halves that are whole, each with the end of the differences that follow it
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

// keyWriter writes the keys of series.
type keyWriter struct {
	w    *file.Writer
	page keyPage
}

// NewKeyWriter returns the hooks of the writer of keys.
func NewKeyWriter(w *file.Writer) file.Hooks {
	p := &keyWriter{w: w}
	return file.Hooks{BeginSeries: p.begin, EndTenant: p.flush}
}

func (p *keyWriter) begin(k model.Key, _ model.Labels) error {
	p.page.add(p.w.Rank(), k)
	if p.page.full(p.w.Sizes.PageBytes) {
		return p.flush()
	}
	return nil
}

func (p *keyWriter) flush() error {
	if p.page.count == 0 {
		return nil
	}
	p.w.Payload = p.page.payload(p.w.Payload[:0])
	e := file.Entry{Rank0: p.page.rank0, Ranks: uint32(p.page.count), Key: p.page.first}
	p.page.count = 0
	return p.w.AddPage(KeySection, file.CodecNone, e)
}

// keyDir is a page of keys. It decodes the keys of one restart at a time.
type keyDir struct {
	rank0    uint32
	count    int // 0: no page
	restarts []byte
	diffs    []byte
	los      []byte

	group int // the restart that is decoded into his; -1: none
	his   [restartRanks]uint64
	// past is the index in the decoded restart from which find goes on. probes counts the lookups in restart
	// probed before it is decoded.
	past, probed, probes int
}

func (d *keyDir) decode(payload []byte) error {
	s := column.Scan{Rest: payload}
	d.group, d.count, d.probed = -1, 0, -1
	d.rank0 = uint32(s.Below(1<<32 - 1))
	n := s.Below(maxPageKeys)
	d.restarts = s.Next(restartBytes * uint64((n+restartRanks-1)/restartRanks))
	if s.Bad || n == 0 {
		return column.Corrupt("page of keys: no header")
	}
	d.diffs = s.Next(uint64(binary.LittleEndian.Uint32(d.restarts[len(d.restarts)-4:])))
	d.los = s.Next(8 * uint64(n))
	if err := s.End("page of keys"); err != nil {
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

// diffsEnd returns the offset at which the differences after a restart end.
func (d *keyDir) diffsEnd(group int) uint32 {
	if group < 0 {
		return 0
	}
	return binary.LittleEndian.Uint32(d.restarts[restartBytes*group+8:])
}

// load decodes the restart of the i-th key, which the page must have. Decoding only up to the key was tried:
// it did not make queries measurably faster.
func (d *keyDir) load(i int) error {
	g := i / restartRanks
	if d.group == g {
		return nil
	}
	d.group = -1
	n := min(d.count-g*restartRanks, restartRanks)
	from, to := d.diffsEnd(g-1), d.diffsEnd(g)
	if from > to || int(to) > len(d.diffs) {
		return column.Corrupt("page of keys: differences end at %d and begin at %d", to, from)
	}
	d.his[0] = d.first(g).Hi
	if rest, bad := sumUvarints(d.his[:n], d.diffs[from:to]); bad || len(rest) > 0 {
		return column.Corrupt("page of keys: differences after rank %d", int(d.rank0)+g*restartRanks)
	}
	d.group, d.past = g, g*restartRanks
	return nil
}

// key returns the i-th key, which has been loaded.
func (d *keyDir) key(i int) model.Key { return model.Key{Hi: d.his[i%restartRanks], Lo: d.lo(i)} }

// beyond reports whether a restart begins with a greater key. It seldom has to read the lower half, which is
// stored elsewhere.
func (d *keyDir) beyond(group int, k model.Key) bool {
	hi := binary.BigEndian.Uint64(d.restarts[restartBytes*group:])
	return hi > k.Hi || hi == k.Hi && d.lo(restartRanks*group) > k.Lo
}

// groupOf returns the last restart that is not beyond a key, -1 if all are. Keys that are sought in order are
// mostly close after the restart near.
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
	return i + sort.Search(min(d.count-i, restartRanks), func(n int) bool { return !d.key(i + n).Less(k) }), nil
}

// fewProbes is the number of lookups in a restart before it is decoded. A query that asks several parts for
// one key out of many mostly misses, and need not decode for a miss: see BenchmarkFindKeys.
const fewProbes = 4

// find returns the index of a key, -1 if the page does not have it, and the restart in which it would be.
// Keys must ascend from call to call. Lower halves are stored whole and hardly two are equal, so a miss need
// not decode the upper halves.
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
	for i = d.past; i < end && d.key(i).Less(k); i++ {
	}
	if d.past = i; i == end || d.key(i) != k {
		i = -1
	}
	return i, g, nil
}

// nearKeys is the number of next keys to compare before a binary search. A query for all series of a metric
// asks for consecutive keys of a part, or for keys between two of them: see BenchmarkFindKeys.
const nearKeys = 4

// near looks for a key, greater than those before, among the next ones of the decoded restart. It returns the
// index, -1 if the page does not have the key, and whether the search has decided.
func (d *keyDir) near(k model.Key) (i int, known bool) {
	if d.group < 0 || d.beyond(d.group, k) { // another may have decoded it meanwhile
		return -1, false
	}
	end := min(d.past+nearKeys, (d.group+1)*restartRanks, d.count)
	for ; d.past < end; d.past++ {
		if at := d.key(d.past); !at.Less(k) {
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

// sumUvarints sets each number but the first to the one before plus a uvarint of b, and returns the rest of
// b. It reads numbers of three and four bytes, which most differences of hashes have, as one word. A
// branchless word for any length was tried and is slower, because each number then waits for the one
// before. See BenchmarkFindKeys.
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
