package state

// Filter says whether a key may be in a set, and never calls one of the set's missing (a Bloom filter). About
// one of 40 others may seem to be in it.
type Filter []byte

const (
	// filterBits is how many bits a key takes, before the number is rounded up to a power of two.
	filterBits = 8
	// filterProbes is how many of them a key sets.
	filterProbes = 4
	// leastFilter makes small filters hardly ever wrong.
	leastFilter = 128
	// maxFilter bounds a filter.
	maxFilter = 1 << 18
)

// NewFilter returns a filter with room for so many keys; nil: it would be too large.
func NewFilter(keys int64) Filter {
	size := int64(leastFilter)
	for 8*size < filterBits*keys {
		size *= 2
	}
	if size > maxFilter {
		return nil
	}
	return make(Filter, size)
}

// Add adds the lower half of a key.
func (f Filter) Add(lo uint64) {
	for i := range filterProbes {
		at := f.probe(lo, i)
		f[at/8] |= 1 << (at % 8)
	}
}

// Has reports whether a key may have been added.
func (f Filter) Has(lo uint64) bool {
	for i := range filterProbes {
		if at := f.probe(lo, i); f[at/8]&(1<<(at%8)) == 0 {
			return false
		}
	}
	return true
}

// probe returns the number of a bit. The last bits of keys are equal in a partition, so they are mixed first.
func (f Filter) probe(lo uint64, i int) uint64 {
	lo = (lo ^ lo>>32) * 0x9e3779b97f4a7c15
	lo ^= lo >> 29
	return (lo>>32 + uint64(i)*(lo|1)&0xffffffff) & uint64(8*len(f)-1)
}

// valid reports whether a filter that was decoded may be asked.
func (f Filter) valid() bool {
	return len(f) >= leastFilter && len(f) <= maxFilter && len(f)&(len(f)-1) == 0
}
