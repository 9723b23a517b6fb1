package model

import (
	"context"
	"fmt"
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
	// LabelsOnly asks for labels without rows.
	LabelsOnly bool
	// LabelsCharged says that the reader charges the quota for the labels that it keeps. Sources may ignore
	// it.
	LabelsCharged bool
	// Unlabelled says that the reader ignores the labels of series. A source may leave them out.
	Unlabelled bool
	// TextFilter, if set, lets a source leave out pages of text.
	TextFilter *TextFilter
	Quota      *Quota
	Cost       *Cost
}

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

// Quota bounds one query. A zero limit means none. It may be used by several goroutines.
type Quota struct {
	MaxSeries, MaxSamples, MaxBytes int64
	// Pool bounds the memory of all queries together; nil: no bound.
	Pool *QueryPool

	series, samples, bytes atomic.Int64
	spare                  atomic.Int64 // the part of bytes that TakeSpare has charged
}

// TakeSeries charges series and the bytes of their labels. Its error is of class [ErrLimit] and names the
// limit.
func (q *Quota) TakeSeries(n, labelBytes int64) error {
	if got := q.series.Add(n); q.MaxSeries > 0 && got > q.MaxSeries {
		return fmt.Errorf("%w: the query selects more than %d series (query.max-series); narrow its selectors", ErrLimit, q.MaxSeries)
	}
	return q.TakeBytes(labelBytes)
}

// TakeSamples charges samples and 16 bytes of memory for each.
func (q *Quota) TakeSamples(n int64) error {
	if got := q.samples.Add(n); q.MaxSamples > 0 && got > q.MaxSamples {
		return fmt.Errorf("%w: the query reads more than %d samples (query.max-samples); shorten its range or narrow its selectors", ErrLimit, q.MaxSamples)
	}
	return q.TakeBytes(16 * n)
}

// Charge is a snapshot of the charges of a query.
type Charge struct{ series, samples, bytes int64 }

// Charged returns the charges of the query until now.
func (q *Quota) Charged() Charge { return Charge{q.series.Load(), q.samples.Load(), q.bytes.Load()} }

// Revert takes back all charges since a snapshot, for an attempt whose results are dropped. The attempt must
// have ended, so that nothing charges meanwhile.
func (q *Quota) Revert(to Charge) {
	q.series.Store(to.series)
	q.samples.Store(to.samples)
	_ = q.TakeBytes(to.bytes - q.bytes.Load()) // giving back does not fail
}

// TakeBytes charges memory; a negative n gives it back. With an error nothing is charged. The error is of
// class [ErrLimit] if the query is too large, and of class [ErrTransient] if all queries together are.
func (q *Quota) TakeBytes(n int64) error {
	if got := q.bytes.Add(n); q.MaxBytes > 0 && n > 0 && got > q.MaxBytes {
		q.bytes.Add(-n)
		return fmt.Errorf("%w: the query needs more than %d bytes of memory (query.max-bytes); shorten its range or narrow its selectors", ErrLimit, q.MaxBytes)
	}
	if q.Pool == nil {
		return nil
	}
	if err := q.Pool.take(n); err != nil {
		q.bytes.Add(-n)
		return err
	}
	return nil
}

// TakeSpare charges memory for optional work, such as prefetching, and reports whether it did. The total of
// spare memory is at most 1/share of MaxBytes. The charge must leave the query a quarter of MaxBytes, and all
// queries together half of the pool. GiveSpare gives the memory back.
func (q *Quota) TakeSpare(n, share int64) bool {
	if q.Pool != nil && q.Pool.used.Load()+n > q.Pool.MaxBytes/2 {
		return false
	}
	if q.MaxBytes > 0 && q.bytes.Load()+n > q.MaxBytes/4*3 {
		return false
	}
	if got := q.spare.Add(n); q.MaxBytes > 0 && got > q.MaxBytes/share || q.TakeBytes(n) != nil {
		q.spare.Add(-n)
		return false
	}
	return true
}

// GiveSpare gives back memory that TakeSpare has charged.
func (q *Quota) GiveSpare(n int64) {
	q.spare.Add(-n)
	_ = q.TakeBytes(-n) // giving back does not fail
}

// Release gives the memory of the query back to the pool. The query must be over.
func (q *Quota) Release() {
	if held := q.bytes.Swap(0); q.Pool != nil {
		q.Pool.used.Add(-held)
	}
}

// QueryPool is the memory that all queries may hold together. It is charged through their quotas.
type QueryPool struct {
	MaxBytes int64

	used atomic.Int64
}

// Used returns the bytes that queries hold now.
func (p *QueryPool) Used() int64 { return p.used.Load() }

// take charges n bytes or, with an error of class transient, none: there may be room later.
func (p *QueryPool) take(n int64) error {
	if got := p.used.Add(n); n > 0 && got > p.MaxBytes {
		p.used.Add(-n)
		return &LimitError{Limit: "memory", Text: fmt.Sprintf(
			"the queries that are running hold %d of the %d bytes that all together may hold, and this one needs %d more; ask again later, or for less", got-n, p.MaxBytes, n)}
	}
	return nil
}

// Cost counts the data that a query read, by source. It may be used by several goroutines.
type Cost struct {
	Series, Samples          atomic.Int64 // handed to the language
	HeadBuffers              atomic.Int64 // sealed runs of buffered rows that were read
	HeadParts                atomic.Int64 // local parts that were read
	Blocks                   atomic.Int64 // blocks of the bucket that were read
	PagesRAM                 atomic.Int64 // pages found in the page cache
	PagesDisk                atomic.Int64 // pages read from local parts
	PagesBucket, BytesBucket atomic.Int64 // pages and bytes read from the bucket
	BucketRequests           atomic.Int64
	TextPages                atomic.Int64 // pages of lines that were within the request's selectors and range
	TextPagesSkipped         atomic.Int64 // those of them that their filter ruled out
	TextBytes                atomic.Int64 // bytes of lines that the language looked at
	TextLines                atomic.Int64 // lines whose text the language looked at
}
