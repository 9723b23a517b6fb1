package model

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
)

// MatchOp is the operator of a matcher.
type MatchOp uint8

// The operators, in PromQL's spelling: =, !=, =~, !~.
const (
	MatchEqual MatchOp = iota
	MatchNotEqual
	MatchRegexp
	MatchNotRegexp
)

// Matcher selects series by one label. A missing label has the value "".
type Matcher struct {
	Name  string
	Op    MatchOp
	Value string
	// Match reports whether a value satisfies the matcher. It is set for every operator.
	Match func(value string) bool
	// Standard says that a regular expression is one of RE2 that must match a whole value, so that other
	// processes can compile it from Value. Otherwise only Match knows what it means.
	Standard bool
	// Set lists all values that a regular expression can match, if they are known and few (a|b|c).
	Set []string
	// Prefix is a literal prefix of every matching value; it may be empty. It is set only for MatchRegexp.
	Prefix string
}

// MatchesEmpty reports whether a series without the label satisfies the matcher.
func (m *Matcher) MatchesEmpty() bool { return m.Match("") }

// Request is a request of the read path to a source.
type Request struct {
	Tenant string
	Signal Signal
	// Family is the family of the wanted rows; 0 means Samples.
	Family   Family
	Matchers []Matcher
	// Range bounds the wanted rows. A source may return a series without rows in the range, or leave it out.
	Range TimeRange
	// Horizon hides older rows of some series; nil: Range says it all.
	Horizon *Horizon
	// LabelsOnly asks for labels without rows.
	LabelsOnly bool
	// LabelsCharged says that the reader charges the quota for the labels that it keeps. Sources may ignore
	// it.
	LabelsCharged bool
	// Unlabelled says that the reader ignores the labels of series. A source may leave them out.
	Unlabelled bool
	// Rollup, if set, lets a source of blocks return rollups in place of rows.
	Rollup *RollupRequest
	// TextFilter, if set, lets a source leave out pages of text.
	TextFilter *TextFilter
	// Cells, if set, says that the reader counts chunks of text without reading them: the Rows of a chunk, and
	// its Bytes if they are wanted, then count no line twice. A source that makes chunks for the request keeps
	// each within a cell.
	Cells *TextCells
	// Sample, if set, says that the reader looks at a sample of lines. A source may then choose it.
	Sample *TextSample
	// Ahead, if set, is what a source knows of the lines already. Other sources ignore it.
	Ahead Ahead
	Quota *Quota
	Cost  *Cost
}

// TextSample asks for a sample of about so many lines. A source that chooses it returns chunks of the chosen
// lines only, and says how many lines each of them stands for.
type TextSample struct {
	Lines int
	// Plain says that the reader looks at lines, their times and their levels only. A source may then return
	// lines of several streams as one series, and leave out other metadata.
	Plain bool
}

// Ahead is what a source knows of lines before they are selected.
type Ahead interface {
	// Release gives up what no cursor has taken over.
	Release()
}

// RollupRequest asks for rollups. Retention does not bound such a request: the reader does, by the policies
// of its series. Rows and rollups of one slot may come both, if rows came late.
type RollupRequest struct {
	// Step is the length of the wanted slots in nanoseconds. 0 asks for those only whose rows are gone.
	Step int64
	// Policies names the rules by which the rollups must be made, unless their rows are gone.
	Policies string
	// Crossing asks also for the rollups of the slot that crosses the end of the range: their rows are at the
	// end of the slot, beyond the range. Points beyond it are not wanted.
	Crossing bool
	// Raw asks for the rows wherever they still are.
	Raw bool
	// Others asks for rollups of other steps where neither rows nor rollups of Step are left.
	Others bool
	// Of, if set, says from rollups of which step each series is read: one of Steps. Step is not used then.
	Of    func(l Labels) (step int64, err error)
	Steps []int64
}

// TextCells divide time at Phase plus every multiple of Step: a cell ends with such a time. Step 0 means that
// all of time is one cell.
type TextCells struct {
	Step, Phase int64
	// Bytes says that the Bytes of chunks are wanted. Otherwise they may be estimates.
	Bytes bool
	// Grouped says that the reader looks at no other labels of series than Labels. A source may then count the
	// lines of all streams with the same of them as one series, unless a stream has not all of Labels.
	Grouped bool
	Labels  []string
}

// Horizon says before which time rows have expired, where that differs among the series of a tenant.
type Horizon struct {
	// Times are all of these times.
	Times []int64
	// Latest is the greatest of these times: rows from it on are hidden in no series.
	Latest int64
	// Before returns the time for a series.
	Before func(l Labels) int64
	// Group returns the time for all series of a group of blocks, if it is known.
	Group func(group string) (t int64, ok bool)
}

// MayHide reports whether rows from a time on may be hidden. A nil horizon hides nothing.
func (h *Horizon) MayHide(from int64) bool { return h != nil && from < h.Latest }

// Cursor walks the series of one source that satisfy a request, in the order of their keys. It is used by one
// goroutine.
type Cursor interface {
	// Next moves to the next series. It returns false at the end or on an error.
	Next(ctx context.Context) bool
	// Key and Labels describe the series. The labels are valid until Next.
	Key() Key
	Labels() Labels
	// AppendRows appends the rows of the series within the request's range, ascending and unique in time.
	AppendRows(ctx context.Context, dst *Rows) error
	// Order decides between cursors with rows of the same series and time: the row of the higher order
	// arrived later.
	Order() uint64
	Err() error
	// Close releases the data that the cursor pins. It must be called.
	Close() error
}

// Cost counts the data that a query read, by source. It may be used by several goroutines.
type Cost struct {
	Series, Samples          atomic.Int64 // handed to the language
	HeadBuffers              atomic.Int64 // sealed runs of buffered rows that were read
	HeadParts                atomic.Int64 // local parts that were read
	Blocks                   atomic.Int64 // blocks of the bucket that were read
	PagesRAM                 atomic.Int64 // pages found in the page cache
	PagesDisk                atomic.Int64 // pages read from local parts, and from the cache on an SSD
	PagesShared              atomic.Int64 // pages read from memcached
	PagesBucket, BytesBucket atomic.Int64 // pages and bytes read from the bucket
	BucketRequests           atomic.Int64
	TextPages                atomic.Int64 // pages of lines that were within the request's selectors and range
	TextPagesSkipped         atomic.Int64 // those of them that their filter ruled out
	TextBytes                atomic.Int64 // bytes of lines that the language looked at
	TextLines                atomic.Int64 // lines whose text the language looked at
	Warnings                 Warnings
	// Reach is what the response depends on. Whoever answers a part of a query from what it has kept must add
	// what that part depends on.
	Reach Reach

	// Fresh says that nothing may be taken from results of earlier queries.
	Fresh bool
	// MayLag says that the response may be kept for a moment although lines come meanwhile that another server
	// has: it lists or sums up what is there.
	MayLag bool

	id atomic.Uint64 // see QueryID

	// Bill, if set, gathers what the query would read, and the query is not run. See [Bill].
	Bill *Bill
	// Spend, if set, is asked before each request to the bucket. Its error, of class [ErrLimit], ends the
	// query.
	Spend func(bytes int64) error
}

// QueryID returns a random number that tells the query from others: the same at each call, and never 0.
func (c *Cost) QueryID() uint64 {
	for {
		if id := c.id.Load(); id != 0 {
			return id
		}
		c.id.CompareAndSwap(0, rand.Uint64())
	}
}

// SetQueryID makes the cost count for a query whose other costs have that number.
func (c *Cost) SetQueryID(id uint64) { c.id.Store(id) }

// Ask counts a request to the bucket for so many bytes, unless the budget of the query refuses it.
func (c *Cost) Ask(bytes int64) error {
	if c.Spend != nil {
		if err := c.Spend(bytes); err != nil {
			return err
		}
	}
	c.BucketRequests.Add(1)
	return nil
}
