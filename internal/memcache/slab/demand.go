package slab

import (
	"cmp"
	"math"
	"slices"
)

func ln(x float64) float64 { return math.Log(x) }

// Items are a number of items of one size.
type Items struct {
	// Size is what an item takes, as ItemSize has it. Head is the part of it that is not its value.
	Size, Head uint32
	Count      float64
}

// Chunks are a number of chunks that hold at least so many bytes.
type Chunks struct {
	Size  uint32
	Count float64
}

// Demand returns the chunks that items ask for, by size. An item of more than ChunkMax bytes is a head, full
// chunks, and a last chunk that fits the rest.
func (c Config) Demand(items []Items) []Chunks {
	count := map[uint32]float64{}
	for _, it := range items {
		if it.Size <= c.ChunkMax {
			count[it.Size] += it.Count
			continue
		}
		count[it.Head+ChunkHeader] += it.Count
		value, room := it.Size-it.Head, c.ChunkMax-ChunkHeader
		count[c.ChunkMax] += it.Count * float64(value/room)
		if rest := value % room; rest > 0 {
			count[rest+ChunkHeader] += it.Count
		}
	}
	demand := make([]Chunks, 0, len(count))
	for size, n := range count {
		if n > 0 {
			demand = append(demand, Chunks{size, n})
		}
	}
	slices.SortFunc(demand, func(a, b Chunks) int { return cmp.Compare(a.Size, b.Size) })
	return demand
}

// Bytes returns what a demand takes of full pages. Each class that is used has half a page more, which is
// what its last page has free on average.
func (t Table) Bytes(demand []Chunks) (total float64) {
	used := map[int]bool{}
	for _, d := range demand {
		class := t.Of(d.Size)
		total += d.Count * class.Cost()
		used[class.ID] = true
	}
	return total + float64(len(used))*Page/2
}

// BestFactor returns the growth factor, of two digits after the point, whose classes take the fewest bytes.
// It is at least LeastFactor.
func (c Config) BestFactor(demand []Chunks) (best float64) {
	least := math.Inf(1)
	for hundredth := int(math.Ceil(c.LeastFactor() * 100)); hundredth <= 200; hundredth++ {
		c.Factor, c.Sizes = float64(hundredth)/100, nil
		if n := c.Table().Bytes(demand); n < least {
			best, least = c.Factor, n
		}
	}
	return best
}

// LeastFactor returns the smallest growth factor, of three digits after the point, that does not end in a
// trap: all classes but the last are a step of it apart.
func (c Config) LeastFactor() float64 {
	c.Sizes = nil
	for thousandth := 1010; thousandth < 3000; thousandth++ {
		c.Factor = float64(thousandth) / 1000
		t := c.Table()
		if last := float64(t[len(t)-1].Size) / float64(t[len(t)-2].Size); last <= c.Factor*c.Factor {
			return c.Factor
		}
	}
	return 3
}
