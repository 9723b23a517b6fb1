package workload

import (
	"math"
	"math/rand/v2"
	"sort"
)

// Sizes of chunks in bytes: log-normal with this median and deviation, within the bounds.
const (
	sizeMedian = 350e3
	sizeSigma  = 0.85
	sizeMin    = 20e3
	sizeMax    = 2e6
)

// history is how far back queries can look, in hours, before the first request.
const history = 720

// stream produces one chunk after the other. Chunk i covers [begin+i*span, begin+(i+1)*span) in hours.
type stream struct {
	begin, span float64
	// key is the key of chunk 0, and chunks their number.
	key    uint32
	chunks int
}

// production is what all groups produce.
type production struct {
	groups  [][]stream
	sizes   []uint32
	popular picker
}

func (m *Model) produce(rng *rand.Rand) *production {
	p := &production{groups: make([][]stream, m.Groups)}
	weights := make([]float64, m.Groups)
	sum := 0.0
	for g := range weights {
		weights[g] = math.Pow(float64(g+1), -0.7)
		sum += weights[g]
	}
	end := (m.Days + m.WarmUpDays) * 24
	for g := range p.groups {
		n := max(1, int(math.Round(float64(m.Streams)*weights[g]/sum)))
		for range n {
			span := m.Span * (0.65 + 1.3*rng.Float64())
			s := stream{begin: -history - span*rng.Float64(), span: span, key: uint32(len(p.sizes))}
			s.chunks = int((end - s.begin) / span)
			for range s.chunks {
				size := sizeMedian * math.Exp(sizeSigma*rng.NormFloat64())
				p.sizes = append(p.sizes, uint32(min(max(size, sizeMin), sizeMax)))
			}
			p.groups[g] = append(p.groups[g], s)
		}
	}
	// Groups that produce much are asked often, but for half of the groups the two have nothing in common.
	rank := make([]int, m.Groups)
	var moved []int
	for g := range rank {
		rank[g] = g
		if rng.Float64() < 0.5 {
			moved = append(moved, g)
		}
	}
	for i, j := range rng.Perm(len(moved)) {
		rank[moved[i]] = moved[j]
	}
	for g := range rank {
		p.popular.add(math.Pow(float64(rank[g]+1), -m.Popularity))
	}
	return p
}

// picker draws indexes by weight.
type picker struct{ sums []float64 }

func (p *picker) add(weight float64) {
	if n := len(p.sums); n > 0 {
		weight += p.sums[n-1]
	}
	p.sums = append(p.sums, weight)
}

func (p *picker) pick(rng *rand.Rand) int {
	x := rng.Float64() * p.sums[len(p.sums)-1]
	return min(sort.SearchFloat64s(p.sums, x), len(p.sums)-1)
}
