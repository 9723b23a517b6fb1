package advise

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/shaledb/shale/internal/memcache/slab"
)

// worthwhile is the share of memory that a change must save to be advised: a restart empties the cache.
const worthwhile = 0.02

// Option is a layout of memory.
type Option struct {
	Name   string      `json:"name"`
	Config slab.Config `json:"config"`
	Args   []string    `json:"args"`
	// Bytes is what the items of now take in it. More is how many more of them it holds than now.
	Bytes int64   `json:"bytes"`
	More  float64 `json:"more_items"`
	// Saved is the memory that the items of now need less, of all that the servers have, and Money its price a
	// month, in dollars.
	Saved int64   `json:"saved_bytes"`
	Money float64 `json:"saved_dollars_a_month"`
	// Refused says why it must not be used.
	Refused string `json:"refused,omitempty"`
}

// Finding is something to know or to change besides slab classes.
type Finding struct {
	Topic string `json:"topic"`
	Text  string `json:"text"`
	// Args are arguments of memcached that mend it, or nil.
	Args []string `json:"args,omitempty"`
}

// Report is all that there is to say about servers.
type Report struct {
	Servers  []*Server `json:"servers"`
	Wastes   []Waste   `json:"waste"`
	Options  []Option  `json:"options"`
	Advised  int       `json:"advised"` // index of Options
	Findings []Finding `json:"findings"`
	Memory   int64     `json:"memory_bytes"`
	// Count and Mean are of the items.
	Count float64 `json:"items"`
	Mean  float64 `json:"mean_item_bytes"`
	// CommandLine starts a server as advised.
	CommandLine []string `json:"command_line"`
	Exact       bool     `json:"exact"`
}

// Ask are the wishes of the operator.
type Ask struct {
	// Factors are growth factors to judge besides those that are found.
	Factors []float64
	// Memory is what each server is to have, for those that are known from a file, in bytes; 0: what the file
	// says. Their items are taken to fill it.
	Memory int64
	// Price is of a GB of memory, in dollars a month.
	Price float64
}

// Advise makes a report. There is at least one server; the first one says what the options of now are.
func Advise(servers []*Server, ask Ask) (*Report, error) {
	r := &Report{Servers: servers, Exact: true}
	var items []slab.Items
	for _, s := range servers {
		if s.Stats == nil && ask.Memory > 0 {
			s.fill(ask.Memory)
		}
		r.Wastes = append(r.Wastes, s.Waste())
		r.Memory += s.Memory
		r.Exact = r.Exact && s.Exact
		items = append(items, s.Items...)
	}
	for _, it := range items {
		r.Count += it.Count
		r.Mean += it.Count * float64(it.Size)
	}
	if r.Count == 0 {
		return nil, fmt.Errorf("%s: no items, so that nothing can be said about sizes", servers[0].Addr)
	}
	r.Mean /= r.Count
	r.options(items, ask)
	r.findings()
	r.CommandLine = r.commandLine()
	return r, nil
}

// fill scales the items of a server so that they fill its memory, with its classes as they are.
func (s *Server) fill(memory int64) {
	var take float64
	table := s.Config.Table()
	for _, d := range s.Config.Demand(s.Items) {
		take += d.Count * table.Of(d.Size).Cost()
	}
	if take == 0 {
		return
	}
	scale := float64(memory) / take
	s.Memory = memory
	for i := range s.Items {
		s.Items[i].Count *= scale
	}
	for i := range s.Classes {
		c := &s.Classes[i]
		c.Items = int64(math.Round(float64(c.Items) * scale))
		c.Pages = (c.Items + int64(c.PerPage) - 1) / int64(c.PerPage)
		c.Used, c.Free = c.Items, c.Pages*int64(c.PerPage)-c.Items
	}
}

// options weighs layouts for the items. Several servers share the items evenly, so that what is for each
// server, the last pages, counts for each.
func (r *Report) options(items []slab.Items, ask Ask) {
	each := make([]slab.Items, len(items))
	for i, it := range items {
		it.Count /= float64(len(r.Servers))
		each[i] = it
	}
	now := r.Servers[0].Config
	add := func(name string, c slab.Config) {
		o := Option{Name: name, Config: c, Args: c.Args(), Bytes: int64(c.Table().Bytes(c.Demand(each))) * int64(len(r.Servers))}
		if trap, is := c.Trap(); is {
			o.Refused = fmt.Sprintf("memcached has at most %d classes: after %s bytes the next chunk has %s, so that an item of %s bytes takes %.0f times its size",
				slab.MaxClasses, humanize.Comma(int64(trap.Below)), humanize.Comma(int64(trap.Above)), humanize.Comma(int64(trap.Below)+1), trap.Factor())
		}
		r.Options = append(r.Options, o)
	}
	add("now", now)
	usual := now
	usual.Sizes = nil
	demand := usual.Demand(each)
	usual.Factor = usual.BestFactor(demand)
	add("best growth factor", usual)
	tightest := usual
	tightest.Factor = math.Ceil(usual.LeastFactor()*100) / 100
	add("smallest safe growth factor", tightest)
	for _, f := range ask.Factors {
		wish := usual
		wish.Factor = f
		add("asked for", wish)
	}
	best := now
	best.Sizes = now.BestSizes(demand, slab.MaxClasses-1)
	add("best sizes", best)
	if chained, ok := bestChained(now, each); ok {
		add("best sizes, large items in smaller chunks", chained)
	}
	r.choose(ask.Price)
}

// bestChained returns the best sizes with another slab_chunk_max than now.
func bestChained(now slab.Config, items []slab.Items) (best slab.Config, ok bool) {
	least := math.Inf(1)
	for chunkMax := uint32(slab.Page / 2); chunkMax >= 8<<10; chunkMax /= 2 {
		c := now
		if c.ChunkMax = chunkMax; chunkMax == now.ChunkMax || now.ItemMax%chunkMax != 0 {
			continue
		}
		demand := c.Demand(items)
		c.Sizes = c.BestSizes(demand, slab.MaxClasses-1)
		if n := c.Table().Bytes(demand); n < least && c.Check() == nil {
			best, least, ok = c, n, true
		}
	}
	return best, ok
}

// choose finds the option to advise: the one that takes the fewest bytes, unless that is hardly less than
// now. Chunks of another size cost reads of large items some time, so they must save more than the best sizes
// do.
func (r *Report) choose(price float64) {
	now := float64(r.Options[0].Bytes)
	for i := range r.Options {
		o := &r.Options[i]
		o.More = now/float64(o.Bytes) - 1
		o.Saved = int64(float64(r.Memory) * (1 - float64(o.Bytes)/now))
		o.Money = float64(o.Saved) / (1 << 30) * price
		than := float64(r.Options[r.Advised].Bytes)
		if o.Refused == "" && float64(o.Bytes) < than*(1-worthwhile) {
			r.Advised = i
		}
	}
	if r.Options[0].Refused == "" || r.Advised != 0 {
		return
	}
	// The layout of now is a trap, even if no item has fallen into it yet.
	for i, o := range r.Options {
		if o.Refused == "" && (r.Advised == 0 || o.Bytes < r.Options[r.Advised].Bytes) {
			r.Advised = i
		}
	}
}

// commandLine returns the command that starts a server as advised.
func (r *Report) commandLine() []string {
	s := r.Servers[0]
	args := []string{"memcached"}
	if s.Settings != nil {
		if port := s.Settings["tcpport"]; port != "11211" && port != "0" {
			args = append(args, "-p", port)
		}
		if inter := s.Settings["inter"]; inter != "" && inter != "NULL" {
			args = append(args, "-l", inter)
		}
		args = append(args, "-m", strconv.FormatInt(s.Memory>>20, 10))
		if n := s.Settings["num_threads"]; n != "4" {
			args = append(args, "-t", n)
		}
		if s.Settings["cas_enabled"] == "no" {
			args = append(args, "-C")
		}
	} else if s.Memory > 0 {
		args = append(args, "-m", strconv.FormatInt(s.Memory>>20, 10))
	}
	var options []string
	take := func(more []string) {
		for i := 0; i < len(more); i++ {
			if more[i] == "-o" && i+1 < len(more) {
				options = append(options, more[i+1])
				i++
			} else {
				args = append(args, more[i])
			}
		}
	}
	for _, f := range r.Findings {
		take(f.Args)
	}
	if s.Settings != nil && !slices.Contains(args, "-c") && s.Settings["maxconns"] != "1024" {
		args = append(args, "-c", s.Settings["maxconns"])
	}
	take(r.Options[r.Advised].Args)
	if s.Settings["track_sizes"] == "yes" {
		options = append(options, "track_sizes")
	}
	if options != nil {
		args = append(args, "-o", strings.Join(options, ","))
	}
	return args
}

// worst returns the classes that waste most.
func worst(w Waste, n int) []ClassWaste {
	all := slices.Clone(w.Classes)
	total := func(c ClassWaste) int64 { return c.InChunks + c.PageEnds + c.FreeBytes }
	slices.SortStableFunc(all, func(a, b ClassWaste) int { return cmp.Compare(total(b), total(a)) })
	return all[:min(n, len(all))]
}
