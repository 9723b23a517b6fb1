package sketch

import (
	"math"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

const (
	// exactly is how many different things a Distinct counts exactly.
	exactly = 1024
	// indexBits gives 4,096 registers, of a byte each.
	indexBits = 12
	registers = 1 << indexBits
	// StandardError is that of a Distinct beyond 1,024 things: 1.04 / sqrt(4096).
	StandardError = 0.01625
)

// Distinct counts different things. Up to 1,024 it keeps their hashes; then it is a HyperLogLog of 4 KiB,
// with the estimator of Ertl ("New cardinality estimation algorithms for HyperLogLog sketches", 2017), which
// needs no table of corrections. The zero value is empty.
type Distinct struct {
	few  map[uint64]struct{}
	many []uint8
}

// Add counts a thing, unless it was counted before.
func (d *Distinct) Add(thing []byte) { d.AddHash(xxhash.Sum64(thing)) }

// AddHash is Add for a thing of which 64 random bits are known.
func (d *Distinct) AddHash(h uint64) {
	if d.many != nil {
		d.raise(h)
		return
	}
	if d.few == nil {
		d.few = make(map[uint64]struct{})
	}
	if d.few[h] = struct{}{}; len(d.few) <= exactly {
		return
	}
	d.many = make([]uint8, registers)
	for h := range d.few {
		d.raise(h)
	}
	d.few = nil
}

func (d *Distinct) raise(h uint64) {
	i := h >> (64 - indexBits)
	zeros := uint8(bits.LeadingZeros64(h<<indexBits|1<<(indexBits-1))) + 1
	d.many[i] = max(d.many[i], zeros)
}

// Bytes is about the memory of the sketch.
func (d *Distinct) Bytes() int64 { return int64(len(d.many)) + 40*int64(len(d.few)) }

// Exact reports whether Count is exact.
func (d *Distinct) Exact() bool { return d.many == nil }

// Count returns how many different things there are, with [StandardError] unless it is exact.
func (d *Distinct) Count() uint64 {
	if d.many == nil {
		return uint64(len(d.few))
	}
	const most = 64 - indexBits // bits that zeros are counted in
	var of [most + 2]float64    // registers by their value
	for _, r := range d.many {
		of[r]++
	}
	z := registers * tau(1-of[most+1]/registers)
	for k := most; k >= 1; k-- {
		z = (z + of[k]) / 2
	}
	z += registers * sigma(of[0]/registers)
	return uint64(math.Round(registers * registers / (2 * math.Ln2 * z)))
}

func sigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	for y, z := 1.0, x; ; y *= 2 {
		x *= x
		before := z
		if z += x * y; z == before {
			return z
		}
	}
}

func tau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	for y, z := 0.5, 1-x; ; y /= 2 {
		x = math.Sqrt(x)
		before := z
		if z -= (1 - x) * (1 - x) * y; z == before {
			return z / 3
		}
	}
}
