package compact

import (
	"cmp"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// job is one merge.
type job struct {
	// why names the reason, for logs and metrics.
	why    string
	inputs []catalog.Block // by order
	cells  []cell          // ascending, of all times
}

// The reasons of merges.
const (
	becauseDay    = "day"    // a day is over
	becauseMany   = "many"   // too many blocks wait for their day to end
	becauseLate   = "late"   // rows came for a day that was merged already
	becauseDelete = "delete" // rows were deleted
	becauseExpire = "expire" // rows of some series have expired
)

// planner decides what to merge among the visible blocks of one signal.
type planner struct {
	o    *Options
	now  int64
	live []catalog.Block // by order
	// deletions that may still be cancelled keep blocks apart.
	deletions catalog.Deletions
	// may reports whether a block may be an input.
	may func(*catalog.Block) bool
	// rollups says that rollups are made.
	rollups bool
}

// bySignal divides the visible blocks into those that may be merged with each other.
func bySignal(live []catalog.Block) [][]catalog.Block {
	var parted [][]catalog.Block
	for _, s := range []model.Signal{model.Metrics, model.Logs} {
		var blocks []catalog.Block
		for _, b := range live {
			if b.Signal == s {
				blocks = append(blocks, b)
			}
		}
		if len(blocks) > 0 {
			sortByOrder(blocks)
			parted = append(parted, blocks)
		}
	}
	return parted
}

func sortByOrder(blocks []catalog.Block) {
	slices.SortFunc(blocks, func(a, b catalog.Block) int {
		return cmp.Or(cmp.Compare(a.OrderHi, b.OrderHi), cmp.Compare(a.OrderLo, b.OrderLo), cmp.Compare(a.ID, b.ID))
	})
}

// firstOpenDay returns the start of the first day that is not over, with the grace.
func (p *planner) firstOpenDay() int64 { return dayOf(p.now - int64(p.o.Grace)) }

// next returns the merge that is due first, or nil, and how many blocks wait for a merge that is due.
func (p *planner) next() (j *job, backlog int) {
	for _, plan := range []func() (*job, int){p.days, p.late, p.many} {
		due, n := plan()
		if backlog += n; j == nil {
			j = due
		}
	}
	return j, backlog
}

// days merges blocks that are not settled and have rows of days that are over. Blocks written after the grace
// of the last day wait for the next one, so that late rows are merged once a day.
func (p *planner) days() (*job, int) {
	over := p.firstOpenDay()
	var due []catalog.Block
	for i := range p.live {
		b := &p.live[i]
		fresh := b.Created < over+int64(p.o.Grace) || b.Created > p.now // or its clock was wrong
		if b.Level < catalog.Settled && b.Range.Min < over && fresh && p.may(b) {
			due = append(due, *b)
		}
	}
	if len(due) == 0 {
		return nil, 0
	}
	inputs := longest(due, p.live, p.may, p.fits)
	return &job{why: becauseDay, inputs: inputs, cells: dayCells(rangeOf(inputs), p.now, over)}, len(due)
}

// many joins small blocks that wait for the end of their day, when there are too many of them. It leaves out
// blocks of a quarter of the greatest size: joining them saves little.
func (p *planner) many() (*job, int) {
	var waiting []catalog.Block
	for i := range p.live {
		if b := &p.live[i]; b.Level < catalog.Settled && b.Bytes <= p.o.MaxBlockBytes/4 && p.may(b) {
			waiting = append(waiting, *b)
		}
	}
	if len(waiting) <= p.o.MaxFresh {
		return nil, 0
	}
	inputs := longest(waiting, p.live, p.may, p.fits)
	var bytes, series int64
	for i := range inputs {
		bytes += inputs[i].Bytes
		series += int64(inputs[i].Series)
	}
	// The number of blocks that remain: one on each side of the cut, more where the series, which may be on
	// both sides, or the bytes are too many for one block, and those of big tenants. A series counts once for
	// each input, so the number may be too high. An estimate without the series made merges that joined
	// nothing and never ended.
	left := 2 + 2*series/int64(p.o.maxSeries) + bytes/p.o.MaxBlockBytes +
		bytes/max(1, int64(p.o.BigTenantShare*float64(p.o.MaxBlockBytes)))
	if int64(len(inputs)) <= 2*left {
		return nil, len(waiting)
	}
	return &job{why: becauseMany, inputs: inputs, cells: halves(p.firstOpenDay())}, len(waiting)
}

// Late blocks of a day are merged with it when there are lateBlocks of them, or when they have a lateShare of
// its bytes, or when no block has arrived for lateRest.
const (
	lateBlocks = 3
	lateShare  = 0.125
	lateRest   = 2 * int64(day)
	// wideBlocks is the number for blocks that span days.
	wideBlocks = 4
)

// late merges settled blocks of one day that may hold the same series, and those that span several days.
func (p *planner) late() (*job, int) {
	byDay := make(map[int64][]catalog.Block)
	var wide []catalog.Block
	for _, b := range p.live {
		if b.Level < catalog.Settled || !p.may(&b) {
			continue
		}
		if start, ok := inOneDay(b.Range); ok {
			byDay[start] = append(byDay[start], b)
		} else {
			wide = append(wide, b)
		}
	}
	var first *job
	backlog := 0
	take := func(blocks []catalog.Block, atLeast int, meet meeting, cells func([]catalog.Block) []cell) {
		all := p.layered(blocks, atLeast, meet)
		inputs := longest(all, p.live, p.may, p.fits)
		if len(p.layered(inputs, 1, meet)) == 0 {
			// The inputs that fit share no series, so that merging them would change nothing.
			if inputs = p.firstTwo(all, meet); inputs == nil {
				return
			}
		}
		if backlog += len(inputs); first == nil || inputs[0].Range.Min < first.inputs[0].Range.Min {
			first = &job{why: becauseLate, inputs: inputs, cells: cells(inputs)}
		}
	}
	for start, blocks := range byDay {
		take(blocks, lateBlocks, p.joinable, func(inputs []catalog.Block) []cell {
			if r := rangeOf(inputs); r.Min >= start && r.Max <= lastOf(start) {
				return oneDay(start)
			}
			return dayCells(rangeOf(inputs), p.now, p.firstOpenDay())
		})
	}
	meet := (*catalog.Block).MayMeet
	if p.rollups {
		meet = (*catalog.Block).SharesDay
	}
	take(wide, wideBlocks, meet, func(inputs []catalog.Block) []cell { return dayCells(rangeOf(inputs), p.now, p.firstOpenDay()) })
	return first, backlog
}

// firstTwo returns two of the blocks that meet, with the blocks that must not be left out, or nil.
func (p *planner) firstTwo(blocks []catalog.Block, meet meeting) []catalog.Block {
	for i := range blocks {
		for k := range i {
			if a, b := &blocks[k], &blocks[i]; !a.SameMerge(b) && meet(a, b) {
				if whole := closure([]catalog.Block{*a, *b}, p.live, p.may, p.fits); whole != nil {
					return whole
				}
			}
		}
	}
	return nil
}

// meeting reports whether two blocks should be one.
type meeting func(a, b *catalog.Block) bool

// joinable is the meeting for blocks of one day: they share series, and either their times overlap or they
// are small. Rollups are made of whole days.
func (p *planner) joinable(a, b *catalog.Block) bool {
	return a.MayShareSeries(b) && (p.rollups || a.Range.Overlaps(b.Range) || a.Bytes+b.Bytes <= p.o.MaxBlockBytes)
}

// layered returns the blocks that overlap each other, if a merge is worth it. The largest blocks of which no
// two meet are the ground, and all others lie on it. Blocks of one merge never meet.
func (p *planner) layered(blocks []catalog.Block, atLeast int, meet meeting) []catalog.Block {
	blocks = slices.Clone(blocks)
	slices.SortFunc(blocks, func(a, b catalog.Block) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.ID, b.ID)) })
	met := func(a, b *catalog.Block) bool { return !a.SameMerge(b) && meet(a, b) }
	var ground, upper []catalog.Block
	for i := range blocks {
		if slices.ContainsFunc(ground, func(g catalog.Block) bool { return met(&g, &blocks[i]) }) {
			upper = append(upper, blocks[i])
		} else {
			ground = append(ground, blocks[i])
		}
	}
	if len(upper) == 0 {
		return nil
	}
	var groundBytes, upperBytes, newest int64
	layers := slices.Clone(upper)
	for i := range upper {
		upperBytes += upper[i].Bytes
		newest = max(newest, upper[i].Created)
	}
	for i := range ground {
		if slices.ContainsFunc(upper, func(u catalog.Block) bool { return met(&u, &ground[i]) }) {
			groundBytes += ground[i].Bytes
			layers = append(layers, ground[i])
		}
	}
	if len(upper) < atLeast && float64(upperBytes) < lateShare*float64(groundBytes) && p.now-newest < lateRest {
		return nil
	}
	sortByOrder(layers)
	return layers
}

// maxReplaced bounds the ids in one commit record.
const maxReplaced = 1024

// An estimate of the memory of an open input besides its windows: decoded pages, an index page of each
// section, and the directory of its tenants.
const (
	inputPages     = 768 << 10
	inputText      = 3 << 20 // of lines: a decoded page, its decoder, and filters with their slices
	directoryBytes = 60
)

// fits reports whether these blocks may be merged together. Two always may, unless a deletion keeps them
// apart.
func (p *planner) fits(inputs []catalog.Block) bool {
	if len(inputs) > 1 && separated(inputs, p.deletions, p.now) {
		return false
	}
	if len(inputs) <= 2 || len(inputs) > maxReplaced {
		return len(inputs) <= 2
	}
	open := chains(inputs)
	var bytes int64
	for _, chain := range open {
		most := 0
		for i := range chain {
			most = max(most, chain[i].TenantCount)
		}
		if bytes += inputPages + int64(most)*directoryBytes; chain[0].Signal == model.Logs {
			bytes += inputText
		}
	}
	return len(open) <= p.o.MaxInputs && bytes <= p.o.MemoryBytes/2
}
