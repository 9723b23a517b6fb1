package advise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/memcache/slab"
	"github.com/shaledb/shale/internal/memcache/stats"
)

// Class is what is known of a slab class of a server.
type Class struct {
	ID        int    `json:"id"`
	ChunkSize uint32 `json:"chunk_size"`
	PerPage   uint32 `json:"chunks_per_page"`
	Pages     int64  `json:"pages"`
	Used      int64  `json:"used_chunks"`
	Free      int64  `json:"free_chunks"`
	// Items and Requested are of the items that begin in the class: an item that is larger than a chunk counts
	// in the last class, wherever its pieces are.
	Items     int64 `json:"items"`
	Requested int64 `json:"requested_bytes"`
	Evicted   int64 `json:"evicted"`
	Unfetched int64 `json:"evicted_unfetched"`
	// Age is that of the oldest item, in seconds.
	Age int64 `json:"age_seconds"`
}

// Server is what is known of a server.
type Server struct {
	Addr    string      `json:"addr"`
	Version string      `json:"version,omitempty"`
	Config  slab.Config `json:"config"`
	Memory  int64       `json:"memory_bytes"`
	Classes []Class     `json:"classes"`
	// Items are what it holds, by size. Exact says that they are counted, not estimated from classes.
	Items []slab.Items `json:"-"`
	Exact bool         `json:"exact"`
	// OnDisk are the items whose values extstore has, with the DiskBytes that they take there.
	OnDisk    int64 `json:"items_on_disk,omitempty"`
	DiskBytes int64 `json:"disk_bytes,omitempty"`
	// Stats and Settings are as the server gives them; a pasted table has none.
	Stats    map[string]string `json:"-"`
	Settings map[string]string `json:"-"`
}

// diskPointer is what an item keeps in memory of a value on disk, in bytes.
const diskPointer = 12

func number(m map[string]string, name string) int64 {
	n, _ := strconv.ParseInt(m[name], 10, 64) // what an older server lacks is 0
	return n
}

// Observe asks a server. Of its items, at most so many are looked at.
func Observe(ctx context.Context, addr string, patience time.Duration, most int) (*Server, error) {
	c, err := stats.Dial(ctx, addr, patience)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, c.Close)
	defer stop()
	answers, err := AskAll(c)
	if err != nil {
		return nil, err
	}
	s, err := Known(c.Addr, answers)
	if err != nil {
		return nil, err
	}
	return s, s.items(c, most)
}

// Answers are what a server says when it is asked for its statistics.
type Answers struct{ General, Settings, Slabs, Items stats.Stats }

// AskAll asks a server for all that its memory is known from, but for its items.
func AskAll(c *stats.Conn) (a Answers, err error) {
	for _, ask := range []struct {
		name string
		into *stats.Stats
	}{{"", &a.General}, {"settings", &a.Settings}, {"slabs", &a.Slabs}, {"items", &a.Items}} {
		if *ask.into, err = c.Ask(ask.name); err != nil {
			return a, err
		}
	}
	return a, nil
}

// Known returns what answers say of a server.
func Known(addr string, a Answers) (s *Server, err error) {
	s = &Server{Addr: addr, Stats: a.General.Map(), Settings: a.Settings.Map()}
	s.Version, s.Memory = s.Stats["version"], number(s.Settings, "maxbytes")
	if s.Config, err = configOf(s.Settings); err != nil {
		return nil, fmt.Errorf("memcached %s: %w", addr, err)
	}
	s.Classes = classesOf(a.Slabs, a.Items)
	if s.sizes(); s.Config.Check() != nil {
		return nil, fmt.Errorf("memcached %s has settings that it should not have started with: %w", addr, s.Config.Check())
	}
	return s, nil
}

// configOf reads what slab classes follow from.
func configOf(settings map[string]string) (c slab.Config, err error) {
	c = slab.Default()
	if c.Factor, err = strconv.ParseFloat(settings["growth_factor"], 64); err != nil {
		return c, fmt.Errorf("expected a growth factor, got %.40q", settings["growth_factor"])
	}
	for name, field := range map[string]*uint32{"chunk_size": &c.MinSize, "item_size_max": &c.ItemMax, "slab_chunk_max": &c.ChunkMax} {
		if n := number(settings, name); n > 0 && n <= 1<<30 {
			*field = uint32(n)
		}
	}
	return c, nil
}

// classesOf reads `stats slabs` and `stats items`.
func classesOf(slabs, items stats.Stats) []Class {
	by := map[int]*Class{}
	take := func(id, name, value string) {
		n, err := strconv.Atoi(id)
		v, err2 := strconv.ParseInt(value, 10, 64)
		if err != nil || err2 != nil || n < 1 || n > 255 || v < 0 {
			return
		}
		if by[n] == nil {
			by[n] = &Class{ID: n}
		}
		by[n].set(name, v)
	}
	for _, s := range slabs {
		if id, name, ok := strings.Cut(s.Name, ":"); ok {
			take(id, name, s.Value)
		}
	}
	for _, s := range items {
		if rest, ok := strings.CutPrefix(s.Name, "items:"); ok {
			if id, name, ok := strings.Cut(rest, ":"); ok {
				take(id, name, s.Value)
			}
		}
	}
	var all []Class
	for _, c := range by {
		if c.ChunkSize > 0 && c.PerPage > 0 {
			all = append(all, *c)
		}
	}
	slices.SortFunc(all, func(a, b Class) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

func (c *Class) set(name string, v int64) {
	switch name {
	case "chunk_size":
		c.ChunkSize = uint32(min(v, 1<<30))
	case "chunks_per_page":
		c.PerPage = uint32(min(v, 1<<20))
	case "total_pages":
		c.Pages = v
	case "used_chunks":
		c.Used = v
	case "free_chunks":
		c.Free = v
	case "number":
		c.Items = v
	case "mem_requested":
		c.Requested = v
	case "evicted":
		c.Evicted = v
	case "evicted_unfetched":
		c.Unfetched = v
	case "age":
		c.Age = v
	}
}

// sizes finds out whether the server has its own slab_sizes: `stats settings` does not name them, but classes
// that the growth factor does not give say so. Only classes that are in use are known.
func (s *Server) sizes() {
	if s.Config.Check() != nil {
		return
	}
	table := s.Config.Table()
	for _, c := range s.Classes {
		if c.ID > len(table) || table[c.ID-1].Size != c.ChunkSize {
			s.Config.Sizes = []uint32{}
		}
	}
	if s.Config.Sizes == nil {
		return
	}
	for _, c := range s.Classes {
		if c.ChunkSize < s.Config.ChunkMax {
			s.Config.Sizes = append(s.Config.Sizes, c.ChunkSize)
		}
	}
}

// items reads the size of each item, or what there is of it.
func (s *Server) items(c *stats.Conn, most int) error {
	type count struct{ items, heads uint64 }
	sizes, seen := map[uint32]count{}, 0
	chunk, last := map[int]uint32{}, 0
	for _, class := range s.Classes {
		chunk[class.ID] = class.ChunkSize
	}
	if s.Config.Sizes == nil {
		last = len(s.Config.Table())
	} else if n := len(s.Classes); n > 0 {
		last = s.Classes[n-1].ID // classes that are not in use are not known
	}
	cas := s.Settings["cas_enabled"] != "no"
	sized, err := c.Ask("sizes")
	if err != nil && !errors.Is(err, stats.ErrUnsupported) {
		return err
	}
	err = c.Dump(func(it stats.Item) bool {
		head := uint32(slab.ItemSize(it.KeyLength(), 0, 0, cas) - len("\r\n"))
		if size := chunk[it.Class]; size > 0 && it.Size > size && it.Class < last {
			// The value is on disk: what is left is too small for it.
			s.OnDisk++
			s.DiskBytes += int64(it.Size)
			it.Size = head + diskPointer
		}
		n := sizes[it.Size]
		n.items++
		n.heads += uint64(head)
		sizes[it.Size] = n
		seen++
		return seen < most
	})
	switch {
	case errors.Is(err, stats.ErrUnsupported):
		// Dumps are off, or the server is older than 1.4.31.
		if s.Items = histogram(sized); s.Items == nil {
			s.Items = Spread(s.Config, s.Classes)
			return nil
		}
	case err != nil:
		return err
	}
	if total := number(s.Stats, "curr_items"); seen > 0 {
		s.Exact = true
		scale := 1.0
		if seen == most && total > int64(seen) {
			scale = float64(total) / float64(seen)
		}
		for size, n := range sizes {
			s.Items = append(s.Items, slab.Items{Size: size, Head: uint32(n.heads / n.items), Count: float64(n.items) * scale})
		}
	}
	slices.SortFunc(s.Items, func(a, b slab.Items) int { return cmp.Compare(a.Size, b.Size) })
	return nil
}

// typicalHead is what an item takes besides its value, if its key is not known: one of 30 bytes.
const typicalHead = slab.ItemHeader + 30 + 1 + 8

// histogram reads `stats sizes`, whose buckets are the next multiples of 32 bytes.
func histogram(sizes stats.Stats) (items []slab.Items) {
	for _, s := range sizes {
		size, err := strconv.ParseUint(s.Name, 10, 32)
		n, err2 := strconv.ParseUint(s.Value, 10, 63)
		if err == nil && err2 == nil && size > 0 && size <= 1<<30 && n > 0 {
			items = append(items, slab.Items{Size: uint32(size), Head: min(typicalHead, uint32(size)), Count: float64(n)})
		}
	}
	return items
}

// Spread estimates the sizes of items of which only the classes are known: even by their logarithm within
// each.
func Spread(config slab.Config, classes []Class) (items []slab.Items) {
	const steps = 16
	table := config.Table()
	for _, c := range classes {
		count := c.Items
		if count == 0 || c.ID > len(table) {
			continue
		}
		low := uint32(slab.ItemHeader)
		if c.ID > 1 {
			low = table[c.ID-2].Size
		}
		size := float64(low)
		ratio := float64(c.ChunkSize) / size
		for i := range steps {
			at := size * pow(ratio, (float64(i)+0.5)/steps)
			items = append(items, slab.Items{Size: uint32(at), Head: min(typicalHead, uint32(at)), Count: float64(count) / steps})
		}
	}
	return items
}
