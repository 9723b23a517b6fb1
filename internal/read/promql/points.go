package promql

import "github.com/shaledb/shale/internal/model"

// points are columns of samples: Unix milliseconds, IEEE bits, and start timestamps in milliseconds. There
// are no start timestamps, or as many as samples.
type points struct {
	times  []int64
	values []uint64
	starts []int64
	// blobs is nil if all samples are floats.
	blobs *blobs
}

// blobs are the values of the samples that are not floats. They are separate, because most series have
// none. ends[i] is where the bytes of sample i end, and those of sample i+1 begin.
type blobs struct {
	kinds []model.Kind
	ends  []uint32
	bytes []byte
	// before is the histogram directly before the first point, or nil.
	before []byte
}

func (b *blobs) blob(i int) []byte {
	begin := uint32(0)
	if i > 0 {
		begin = b.ends[i-1]
	}
	return b.bytes[begin:b.ends[i]:b.ends[i]]
}

// histogramBefore returns the histogram directly before the i-th point, or nil if that is another value or
// unknown.
func (b *blobs) histogramBefore(i int) []byte {
	switch {
	case i == 0:
		return b.before
	case b.kinds[i-1] != model.KindHistogram:
		return nil
	}
	return b.blob(i - 1)
}

// slab cuts columns out of large allocations, because a wide query has many short series.
type slab struct {
	times  []int64
	values []uint64
}

// slabPoints is the size of one allocation, in samples: 64 KB per column.
const slabPoints = 8192

// copyRows copies the rows from the given one on into columns of their own, with times cut to milliseconds.
// Of rows in one millisecond, the last stays.
func (s *slab) copyRows(r *model.Rows, from int) points {
	n := r.Len() - from
	if n > len(s.times) {
		// A long series gets columns of its own. The rest of the slab serves the next short one.
		if n > slabPoints/4 {
			return cut(r, from, make([]int64, n), make([]uint64, n))
		}
		s.times, s.values = make([]int64, slabPoints), make([]uint64, slabPoints)
	}
	p := cut(r, from, s.times[:n:n], s.values[:n:n])
	s.times, s.values = s.times[n:], s.values[n:]
	return p
}

func cut(r *model.Rows, from int, times []int64, values []uint64) points {
	var starts []int64
	if len(r.Starts) > 0 {
		starts = make([]int64, len(times))
	}
	n := 0
	for i := from; i < len(r.Times); i++ {
		ms := floorMillis(r.Times[i])
		if n > 0 && times[n-1] == ms {
			n--
		}
		times[n], values[n] = ms, r.Values[i]
		if starts != nil {
			starts[n] = floorMillis(r.Starts[i])
		}
		n++
	}
	p := points{times: times[:n:n], values: values[:n:n]}
	if starts != nil {
		p.starts = starts[:n:n]
	}
	if len(r.Kinds) > 0 {
		p.blobs = cutBlobs(r, from, n)
	}
	return p
}

// cutBlobs copies the blobs of the rows that the n points stand for: the last of each millisecond. It
// returns nil if all are floats.
func cutBlobs(r *model.Rows, from, n int) *blobs {
	size, any := 0, false
	for i := from; i < len(r.Kinds); i++ {
		if r.Kinds[i] != model.KindFloat {
			size, any = size+len(r.Blob(i)), true
		}
	}
	if !any {
		return nil
	}
	b := &blobs{kinds: make([]model.Kind, 0, n), ends: make([]uint32, 0, n), bytes: make([]byte, 0, size)}
	for i := from; i < len(r.Kinds); i++ {
		if i+1 < len(r.Times) && floorMillis(r.Times[i]) == floorMillis(r.Times[i+1]) {
			continue
		}
		if r.Kinds[i] != model.KindFloat {
			b.bytes = append(b.bytes, r.Blob(i)...)
		}
		b.kinds, b.ends = append(b.kinds, r.Kinds[i]), append(b.ends, uint32(len(b.bytes)))
	}
	return b
}
