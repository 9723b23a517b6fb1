package model

// StaleNaN is the bit pattern with which Prometheus marks the end of a series.
const StaleNaN uint64 = 0x7ff0000000000002

// Kind is the type of the value of a row.
type Kind uint8

// The kinds, as they are stored. The value of a float is its IEEE 754 bits. All others are blobs: Rows.Bytes
// has their bytes, and Rows.Values their offset and length.
const (
	KindFloat     Kind = 0
	KindHistogram Kind = 1 // see Histogram
	KindExemplar  Kind = 2 // see Exemplar
	KindText      Kind = 3 // see Line
)

// Rows are the rows of one series and family, as columns. Times are Unix nanoseconds. Starts holds start
// timestamps (0: unknown) and is either empty or as long as the others. Kinds is empty while all rows are
// floats, and otherwise as long as the others.
type Rows struct {
	Times  []int64
	Values []uint64
	Starts []int64
	Kinds  []Kind
	// Bytes holds the blobs, of which Values has the offset (upper half) and the length (lower half). Moving
	// a row does not move its blob. A blob without a row is garbage until Reset.
	Bytes []byte
}

// Len returns the number of rows.
func (r *Rows) Len() int { return len(r.Times) }

// Reset empties the columns and keeps their memory.
func (r *Rows) Reset() {
	r.Times, r.Values, r.Starts = r.Times[:0], r.Values[:0], r.Starts[:0]
	r.Kinds, r.Bytes = r.Kinds[:0], r.Bytes[:0]
}

// Size gives all columns in use room for n rows in all. A column that comes into use later gets as much.
func (r *Rows) Size(n int) {
	r.Times, r.Values = Sized(r.Times, n), Sized(r.Values, n)
	if len(r.Starts) > 0 {
		r.Starts = Sized(r.Starts, n)
	}
	if len(r.Kinds) > 0 {
		r.Kinds = Sized(r.Kinds, n)
	}
}

// Sized returns s with room for n items in all. Unlike append and [slices.Grow] it allocates no more than
// these.
func Sized[T any](s []T, n int) []T {
	if cap(s) >= n {
		return s
	}
	return append(make([]T, 0, n), s...)
}

// Append adds a float. A start of 0 means that it is unknown.
func (r *Rows) Append(t int64, v uint64, start int64) {
	if start != 0 && len(r.Starts) < len(r.Times) {
		r.padStarts()
	}
	r.Times = append(r.Times, t)
	r.Values = append(r.Values, v)
	if start != 0 || len(r.Starts) > 0 {
		r.Starts = append(r.Starts, start)
	}
	if len(r.Kinds) > 0 {
		r.Kinds = append(r.Kinds, KindFloat)
	}
}

// AppendBlob adds a row whose value is a blob, and copies its bytes.
func (r *Rows) AppendBlob(t int64, k Kind, blob []byte, start int64) {
	begin := len(r.Bytes)
	r.Bytes = append(r.Bytes, blob...)
	r.EndBlob(t, k, begin, start)
}

// EndBlob adds a row whose value is Bytes[begin:], which the caller has appended.
func (r *Rows) EndBlob(t int64, k Kind, begin int, start int64) {
	r.padKinds()
	r.Append(t, blobRef(begin, len(r.Bytes)-begin), start)
	if cap(r.Kinds) < cap(r.Times) {
		r.Kinds = Sized(r.Kinds, cap(r.Times))
	}
	r.Kinds = append(r.Kinds[:len(r.Times)-1], k)
}

func blobRef(offset, length int) uint64 { return uint64(offset)<<32 | uint64(uint32(length)) }

// Kind returns the kind of row i.
func (r *Rows) Kind(i int) Kind {
	if len(r.Kinds) == 0 {
		return KindFloat
	}
	return r.Kinds[i]
}

// Blob returns the value of row i, which must not be a float. It aliases Bytes.
func (r *Rows) Blob(i int) []byte {
	begin := r.Values[i] >> 32
	end := begin + r.Values[i]&(1<<32-1)
	return r.Bytes[begin:end:end]
}

// IsStale reports whether row i marks the end of its series: a float, or the sum of a histogram, with the
// bits of StaleNaN.
func (r *Rows) IsStale(i int) bool {
	if r.Kind(i) == KindHistogram {
		return histogramIsStale(r.Blob(i))
	}
	return r.Values[i] == StaleNaN
}

// AppendRows adds the rows [i, j) of o.
func (r *Rows) AppendRows(o *Rows, i, j int) {
	switch {
	case len(o.Starts) > 0:
		r.padStarts()
		r.Starts = append(r.Starts, o.Starts[i:j]...)
	case len(r.Starts) > 0:
		for range j - i {
			r.Starts = append(r.Starts, 0)
		}
	}
	at := len(r.Times)
	if len(o.Kinds) > 0 {
		r.padKinds()
		r.Kinds = append(r.Kinds, o.Kinds[i:j]...)
	}
	r.Times = append(r.Times, o.Times[i:j]...)
	r.Values = append(r.Values, o.Values[i:j]...)
	if len(o.Kinds) == 0 {
		if len(r.Kinds) > 0 {
			r.padKinds()
		}
		return
	}
	for n, k := range o.Kinds[i:j] {
		if k != KindFloat {
			begin := len(r.Bytes)
			r.Bytes = append(r.Bytes, o.Blob(i+n)...)
			r.Values[at+n] = blobRef(begin, len(r.Bytes)-begin)
		}
	}
}

// padStarts gives all existing rows an unknown start.
func (r *Rows) padStarts() {
	r.Starts = Sized(r.Starts, cap(r.Times))
	for len(r.Starts) < len(r.Times) {
		r.Starts = append(r.Starts, 0)
	}
}

// padKinds gives all existing rows without a kind the kind of a float.
func (r *Rows) padKinds() {
	if len(r.Kinds) == len(r.Times) {
		return
	}
	r.Kinds = Sized(r.Kinds, cap(r.Times))
	for len(r.Kinds) < len(r.Times) {
		r.Kinds = append(r.Kinds, KindFloat)
	}
}

// Start returns the start timestamp of row i, or 0.
func (r *Rows) Start(i int) int64 {
	if len(r.Starts) == 0 {
		return 0
	}
	return r.Starts[i]
}

// Same reports whether rows i of r and j of o have equal kinds and values, bit for bit.
func (r *Rows) Same(i int, o *Rows, j int) bool {
	k := r.Kind(i)
	if k != o.Kind(j) {
		return false
	}
	if k == KindFloat {
		return r.Values[i] == o.Values[j]
	}
	return string(r.Blob(i)) == string(o.Blob(j))
}

// Truncate drops all rows from n on. Their blobs remain as garbage.
func (r *Rows) Truncate(n int) {
	r.Times, r.Values = r.Times[:n], r.Values[:n]
	if len(r.Starts) > 0 {
		r.Starts = r.Starts[:n]
	}
	if len(r.Kinds) > 0 {
		r.Kinds = r.Kinds[:n]
	}
}

func (r *Rows) move(to, from int) {
	r.Times[to], r.Values[to] = r.Times[from], r.Values[from]
	if len(r.Starts) > 0 {
		r.Starts[to] = r.Starts[from]
	}
	if len(r.Kinds) > 0 {
		r.Kinds[to] = r.Kinds[from]
	}
}
