package whisperimport

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/bits"
	"slices"

	"github.com/shaledb/shale/internal/read/graphite/policy"
)

// The header of a compressed file: the magic, a version, 28 bytes, and 16 spare ones.
const (
	compressedHeader  = len(magic) + 1 + 28 + 16
	compressedArchive = 128
	blockRangeBytes   = 16
	checksumAt        = len(magic) + 1 + 24
	// bufferedSlots is how many coarse slots the points have that wait to be compressed.
	bufferedSlots = 2
	methodMix     = 7
	maxBlocks     = 1 << 20
)

// compressedInfo is the part of an archive that says where its blocks are.
type compressedInfo struct {
	offset, blockSize, blocks int64
	// current is the block that is being written, up to the byte at used of the file.
	current, used int64
	ranges        []byte
	buffered      []byte
	repeated      bool // an archive before has the same step
}

// decodeCompressed reads a compressed file of go-carbon.
func decodeCompressed(data []byte, now int64) (*file, error) {
	if len(data) < compressedHeader {
		return nil, truncated(data, int64(compressedHeader))
	}
	version := data[len(magic)]
	if version != 1 && version != 2 {
		return nil, corrupt("version %d of compressed files is unknown: expected 1 or 2", version)
	}
	h := data[len(magic)+1:]
	f := &file{compressed: true}
	method := binary.BigEndian.Uint32(h)
	if err := f.setMethod(method, Go); err != nil {
		return nil, err
	}
	if err := f.setXFF(binary.BigEndian.Uint32(h[8:])); err != nil {
		return nil, err
	}
	count := binary.BigEndian.Uint32(h[16:])
	if count < 1 || count > maxArchives*maxArchives {
		return nil, corrupt("the file has %d archives", count)
	}
	end := compressedHeader + compressedArchive*int(count)
	if len(data) < end {
		return nil, truncated(data, int64(end))
	}
	var infos []compressedInfo
	for i := range int(count) {
		info, err := f.compressedArchive(data[compressedHeader+compressedArchive*i:][:compressedArchive], method == methodMix && i > 0)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	if err := f.checkArchives(); err != nil {
		return nil, err
	}
	buffers := version == 1 && method != methodMix
	if buffers && f.others > 0 {
		return nil, corrupt("two archives have one step")
	}
	meta, err := f.ranges(data, infos, end, buffers)
	if err != nil {
		return nil, err
	}
	if got, want := headerChecksum(meta), binary.BigEndian.Uint32(data[checksumAt:]); got != want {
		return nil, corrupt("the header has the checksum %08x, expected %08x", got, want)
	}
	n := 0
	for i := range infos {
		if infos[i].repeated {
			continue
		}
		if err := f.readBlocks(&f.archives[n], &infos[i], data, now); err != nil {
			return nil, err
		}
		n++
	}
	return f, nil
}

// compressedArchive reads the part of the header about one archive. Of archives that have one step and
// several methods only the first is read.
func (f *file) compressedArchive(b []byte, mixed bool) (info compressedInfo, err error) {
	number := func(at int) int64 { return int64(binary.BigEndian.Uint32(b[at:])) }
	a := policy.Archive{Step: number(4), Points: number(8)}
	info = compressedInfo{offset: number(0), blockSize: number(12), blocks: number(16)}
	if mixed {
		b = b[5:]
	}
	info.current, info.used = number(24), number(24+4+36+4)
	if info.blocks < 1 || info.blocks > maxBlocks || info.blockSize < pointBytes || info.current >= info.blocks {
		return info, corrupt("the archive of step %ds has %d blocks of %d bytes, and writes to block %d", a.Step, info.blocks, info.blockSize, info.current)
	}
	if last := len(f.archives) - 1; last >= 0 && f.archives[last].Step == a.Step {
		info.repeated = true
		f.others++
		return info, nil
	}
	f.archives = append(f.archives, archive{Archive: a})
	return info, nil
}

// ranges finds the ranges of blocks and the buffers of all archives, and returns the bytes of the header.
func (f *file) ranges(data []byte, infos []compressedInfo, at int, buffers bool) ([]byte, error) {
	take := func(n int64) ([]byte, error) {
		if int64(len(data)-at) < n {
			return nil, truncated(data, int64(at)+n)
		}
		at += int(n)
		return data[at-int(n) : at], nil
	}
	var err error
	for i := range infos {
		if infos[i].ranges, err = take(blockRangeBytes * infos[i].blocks); err != nil {
			return nil, err
		}
		if buffers && i+1 < len(infos) {
			if infos[i].buffered, err = take(f.archives[i+1].Step / f.archives[i].Step * pointBytes * bufferedSlots); err != nil {
				return nil, err
			}
		}
	}
	return data[:at], nil
}

// headerChecksum is that of the header with zeros in place of the checksum.
func headerChecksum(meta []byte) uint32 {
	c := crc32.ChecksumIEEE(meta[:checksumAt])
	c = crc32.Update(c, crc32.IEEETable, make([]byte, 4))
	return crc32.Update(c, crc32.IEEETable, meta[checksumAt+4:])
}

// readBlocks reads the points of an archive.
func (f *file) readBlocks(a *archive, info *compressedInfo, data []byte, now int64) error {
	if end := info.offset + info.blocks*info.blockSize; end > int64(len(data)) {
		return truncated(data, end)
	}
	var all []point
	for i := range info.blocks {
		r := info.ranges[blockRangeBytes*i:]
		start, last, count := int64(binary.BigEndian.Uint32(r)), int64(binary.BigEndian.Uint32(r[4:])), int64(binary.BigEndian.Uint32(r[8:]))
		if start == 0 {
			continue
		}
		begin := info.offset + i*info.blockSize
		block := data[begin : begin+info.blockSize]
		covered := block
		if i == info.current {
			if info.used < begin || info.used >= begin+info.blockSize {
				return corrupt("the archive of step %ds writes at byte %d, which is not in block %d", a.Step, info.used, i)
			}
			covered = block[:info.used-begin]
		}
		if got, want := crc32.ChecksumIEEE(covered), binary.BigEndian.Uint32(r[12:]); got != want {
			return corrupt("block %d of step %ds has the checksum %08x, expected %08x", i, a.Step, got, want)
		}
		if int64(len(all))+count >= maxPoints {
			return corrupt("the archive of step %ds has more than %d points", a.Step, maxPoints)
		}
		points, err := decodeBlock(block, a.Step, last, count+1)
		if err != nil {
			return err
		}
		if n := int64(len(points)); n != count+1 || points[0].at != start {
			return corrupt("block %d of step %ds has %d points from %d on, expected %d from %d", i, a.Step, n, points[0].at, count+1, start)
		}
		all = append(all, points...)
	}
	for b := info.buffered; len(b) >= pointBytes; b = b[pointBytes:] {
		if at := int64(binary.BigEndian.Uint32(b)); at != 0 {
			all = append(all, point{at, binary.BigEndian.Uint64(b[4:])})
		}
	}
	f.keep(a, all, now)
	return nil
}

// keep sorts points, and leaves out those that whisper would not show. Of several at one time the last
// counts.
func (f *file) keep(a *archive, all []point, now int64) {
	slices.SortStableFunc(all, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	for i, p := range all {
		switch {
		case p.at > now:
			f.future++
		case p.at <= now-a.Retention() || p.at%a.Step != 0 || i+1 < len(all) && all[i+1].at == p.at:
			f.stale++
		default:
			a.points = append(a.points, p)
		}
	}
}

// decodeBlock decodes the points of a block up to the last one. The header has its time and the count.
func decodeBlock(block []byte, step, last, count int64) ([]point, error) {
	p := point{int64(binary.BigEndian.Uint32(block)), binary.BigEndian.Uint64(block[4:])}
	points := []point{p}
	before := p
	r := bitReader{b: block[pointBytes:]}
	for p.at != last && int64(len(points)) < count {
		next := point{bits: p.bits}
		next.at, r.bad = r.time(p.at, before.at, step)
		next.bits ^= r.xor(p.bits ^ before.bits)
		if r.bad || r.over || next.at <= p.at || next.at > math.MaxUint32 {
			return nil, corrupt("a block of step %ds ends after %d points, before %d", step, len(points), last)
		}
		before, p = p, next
		points = append(points, p)
	}
	return points, nil
}

// bitReader reads bits, the highest of a byte first.
type bitReader struct {
	b    []byte
	used int // bits of b[0]
	over bool
	bad  bool
}

// read reads a number, of which the lowest eight bits come first.
func (r *bitReader) read(n int) (v uint64) {
	for done := 0; done < n; done += 8 {
		v |= r.piece(min(8, n-done)) << done
	}
	return v
}

// piece reads at most eight bits.
func (r *bitReader) piece(n int) (v uint64) {
	for n > 0 {
		if len(r.b) == 0 {
			r.over = true
			return 0
		}
		take := min(n, 8-r.used)
		v = v<<take | uint64(r.b[0]<<r.used>>(8-take))
		if r.used += take; r.used == 8 {
			r.b, r.used = r.b[1:], 0
		}
		n -= take
	}
	return v
}

// time reads a time: how the distance to the one before differs from the distance before that, in steps. An
// absolute time of 0 is the end of the block.
func (r *bitReader) time(last, before, step int64) (at int64, ended bool) {
	ones := 0
	for ones < 4 && r.read(1) == 1 {
		ones++
	}
	if ones == 4 {
		at = int64(r.read(32))
		return at, at == 0
	}
	change := int64(0)
	if ones > 0 {
		width := []int{7, 9, 12}[ones-1]
		change = int64(r.read(width))
		if sign := int64(1) << (width - 1); change&sign != 0 {
			change = -(change &^ sign)
		}
	}
	return 2*last - before + change*step, false
}

// xor reads the bits in which a value differs from the one before. Its differing bits may lie where those of
// the one before did.
func (r *bitReader) xor(before uint64) uint64 {
	if r.read(1) == 0 {
		return 0
	}
	if r.read(1) == 0 {
		if before == 0 {
			return 0
		}
		leading, trailing := bits.LeadingZeros64(before), bits.TrailingZeros64(before)
		return r.read(64-leading-trailing) << trailing
	}
	leading, length := int(r.read(5)), int(r.read(6))
	if length == 63 {
		return r.read(64)
	}
	if leading+length > 64 {
		r.over = true
		return 0
	}
	return r.read(length) << (64 - leading - length)
}
