package slab

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

const (
	// Page is what memcached assigns to a class at a time, in bytes.
	Page = 1 << 20
	// ItemHeader is the struct before the key of an item, and ChunkHeader that of each piece of a large one.
	ItemHeader  = 48
	ChunkHeader = 48
	// MaxClasses is how many classes there may be, the last one included. memcached before 1.4.24 had 200.
	MaxClasses = 63
	// align is what the size of a chunk is a multiple of.
	align = 8
)

// Config is what the classes follow from.
type Config struct {
	// Factor is -f, and MinSize is -n, in bytes.
	Factor  float64
	MinSize uint32
	// ChunkMax is -o slab_chunk_max, in bytes: a larger item lies in several chunks. memcached's help says
	// kilobytes, and its code takes bytes.
	ChunkMax uint32
	// ItemMax is -I, in bytes.
	ItemMax uint32
	// Sizes is -o slab_sizes; if it is set, Factor does not count.
	Sizes []uint32
}

// Default is the configuration of a server without options.
func Default() Config {
	return Config{Factor: 1.25, MinSize: 48, ChunkMax: Page / 2, ItemMax: Page}
}

// Check returns what keeps memcached from starting.
func (c Config) Check() error {
	switch {
	case c.Sizes == nil && !(c.Factor > 1):
		return fmt.Errorf("a growth factor (-f) of %g: expected more than 1", c.Factor)
	case c.MinSize == 0 || c.MinSize > Page:
		return fmt.Errorf("a smallest item (-n) of %d bytes: expected 1 to %d", c.MinSize, Page)
	case c.ItemMax < 1024 || c.ItemMax > 1<<30:
		return fmt.Errorf("an item limit (-I) of %d bytes: expected 1 kB to 1 GB", c.ItemMax)
	case c.ChunkMax == 0 || c.ChunkMax > c.ItemMax:
		return fmt.Errorf("slab_chunk_max of %d bytes: expected at most the item limit (-I), which is %d", c.ChunkMax, c.ItemMax)
	case c.ItemMax%c.ChunkMax != 0:
		return fmt.Errorf("an item limit (-I) of %d bytes is not a multiple of slab_chunk_max, %d", c.ItemMax, c.ChunkMax)
	case Page%c.ChunkMax != 0:
		return fmt.Errorf("slab_chunk_max of %d bytes does not divide a page of %d", c.ChunkMax, Page)
	case len(c.Sizes) > MaxClasses-1:
		return fmt.Errorf("%d slab_sizes: memcached takes at most %d", len(c.Sizes), MaxClasses-1)
	}
	last := uint32(0)
	for _, s := range c.Sizes {
		if s < c.MinSize || s > c.ChunkMax {
			return fmt.Errorf("a size of %d bytes in slab_sizes: expected %d (-n) to %d (slab_chunk_max)", s, c.MinSize, c.ChunkMax)
		}
		if last > 0 && s <= last+align {
			return fmt.Errorf("a size of %d bytes in slab_sizes after %d: expected at least %d more", s, last, align+1)
		}
		last = s
	}
	return nil
}

// Class is a slab class.
type Class struct {
	ID      int
	Size    uint32 // of a chunk, in bytes
	PerPage uint32 // chunks of a page
}

// Cost is what a chunk takes of a page, the end of the page included.
func (c Class) Cost() float64 { return perChunk(c.Size) }

// Table is the classes of a server, by size.
type Table []Class

// Table returns the classes, as slabs_init of memcached computes them. The configuration must be checked.
func (c Config) Table() (t Table) {
	add := func(size uint32) { t = append(t, Class{len(t) + 1, size, Page / size}) }
	size := uint32(ItemHeader) + c.MinSize
	for len(t) < MaxClasses-1 {
		if c.Sizes != nil {
			if len(t) == len(c.Sizes) {
				break
			}
			size = c.Sizes[len(t)]
		} else if float64(size) >= float64(c.ChunkMax)/c.Factor {
			break
		}
		if over := size % align; over != 0 {
			size += align - over
		}
		add(size)
		if c.Sizes == nil {
			size = uint32(float64(size) * c.Factor)
		}
	}
	add(c.ChunkMax)
	return t
}

// Of returns the class of a chunk of so many bytes. What is larger than the last class has the last class.
func (t Table) Of(size uint32) Class {
	return t[min(sort.Search(len(t), func(i int) bool { return t[i].Size >= size }), len(t)-1)]
}

// Trap is a step between two classes that is far larger than the others, because there are no more than
// MaxClasses.
type Trap struct {
	// An item of more than Below bytes takes a chunk of Above bytes.
	Below, Above uint32
}

// Factor is how many times its size an item takes at worst.
func (t Trap) Factor() float64 { return float64(t.Above) / float64(t.Below+1) }

// Trap reports whether the last step of a table is more than twice as large as the growth factor asks for.
func (c Config) Trap() (Trap, bool) {
	t := c.Table()
	if len(t) < 2 || c.Sizes != nil {
		return Trap{}, false
	}
	below, above := t[len(t)-2].Size, t[len(t)-1].Size
	return Trap{below, above}, float64(above) > 2*c.Factor*float64(below)
}

// Expected is the share of memory that chunks waste if the sizes of items are spread evenly by their
// logarithm over classes that grow by a factor.
func Expected(factor float64) float64 { return 1 - (1-1/factor)/ln(factor) }

// ItemSize is what an item takes, as memcached counts it: key, value and flags in bytes.
func ItemSize(key, value int, flags uint32, cas bool) int {
	n := ItemHeader + key + 1 + value + len("\r\n")
	if flags != 0 {
		n += 4
	}
	if cas {
		n += 8
	}
	return n
}

// FromRounded returns the growth factors, of two digits after the point, whose tables have the sizes that a
// listing shows. matches says whether a class of a number may have a size.
func FromRounded(ids []int, matches func(at int, size uint32) bool) (factors []float64) {
	for hundredth := 101; hundredth <= 300; hundredth++ {
		c := Default()
		c.Factor = float64(hundredth) / 100
		t := c.Table()
		if !slices.ContainsFunc(ids, func(id int) bool { return id < 1 || id > len(t) }) {
			fits := true
			for at, id := range ids {
				fits = fits && matches(at, t[id-1].Size)
			}
			if fits {
				factors = append(factors, c.Factor)
			}
		}
	}
	return factors
}

// Args returns the arguments of memcached that make it use a configuration. What is the default is left out.
func (c Config) Args() (args []string) {
	var options []string
	usual := Default()
	if c.ItemMax != usual.ItemMax {
		args = append(args, "-I", strconv.Itoa(int(c.ItemMax)))
	}
	if c.MinSize != usual.MinSize {
		args = append(args, "-n", strconv.Itoa(int(c.MinSize)))
	}
	if c.ChunkMax != usual.ChunkMax {
		options = append(options, fmt.Sprintf("slab_chunk_max=%d", c.ChunkMax))
	}
	if c.Sizes != nil {
		list := make([]string, len(c.Sizes))
		for i, s := range c.Sizes {
			list[i] = strconv.Itoa(int(s))
		}
		options = append(options, "slab_sizes="+strings.Join(list, "-"))
	} else if c.Factor != usual.Factor {
		args = append(args, "-f", strconv.FormatFloat(c.Factor, 'f', -1, 64))
	}
	if options != nil {
		args = append(args, "-o", strings.Join(options, ","))
	}
	return args
}
