package part

import (
	"context"
	"io"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/samples"
	"github.com/shaledb/shale/internal/store/part/series"
	"github.com/shaledb/shale/internal/store/part/text"
)

// Reader reads one part. It holds the footer, takes pages on demand and may be used by several goroutines;
// its cursors may not.
type Reader struct {
	*file.Reader
	// charge, if set, is asked for the memory of label lists.
	charge func(bytes int64) error
}

// Open reads the footer of a file. Pages are read from the file each time.
func Open(ctx context.Context, r io.ReaderAt, size int64) (*Reader, error) {
	return OpenWith(ctx, FilePages(r, nil), file.RangeOf(r), size)
}

// OpenWith reads the footer through read, with one request at the end of the object, or two; pages come from
// p. Errors are of class corrupt if the object is not a part, or not whole, and otherwise what read returns.
func OpenWith(ctx context.Context, p file.Pages, read file.ReadRange, size int64) (*Reader, error) {
	f, err := file.Open(ctx, p, read, size, sections)
	if err != nil {
		return nil, err
	}
	return &Reader{Reader: f}, nil
}

// Bind returns a reader of the same part that takes its pages from p.
func (r *Reader) Bind(p file.Pages) *Reader { return &Reader{r.Reader.Bind(p), r.charge} }

// Charged returns a reader of the same part that asks charge before Select, LabelNames and LabelValues take
// memory that grows with what they look at. They give it back, as a negative number, when they return, except
// [RankBytes] for each rank of Select, and [Selection.Bytes] of SelectRuns. An error of charge ends them and
// is returned. It is called by the goroutines that call them.
func (r *Reader) Charged(charge func(bytes int64) error) *Reader {
	return &Reader{r.Reader, charge}
}

// RankBytes is the memory of a rank.
const RankBytes = series.RankBytes

// Select returns the ranks of the tenant's series that satisfy all matchers, as PromQL means them: a label
// that is absent has the value "". Without matchers it returns all.
func (r *Reader) Select(ctx context.Context, tenant string, ms []model.Matcher) (file.Ranks, error) {
	return series.Select(ctx, r.Reader, tenant, ms, r.charge)
}

// Selection are ranks that come one after the other, ascending. A run of them takes the memory of one.
type Selection = series.Selection

// SelectRuns is Select for callers that need one rank after the other. It leaves [Selection.Bytes] charged.
func (r *Reader) SelectRuns(ctx context.Context, tenant string, ms []model.Matcher) (Selection, error) {
	return series.SelectRuns(ctx, r.Reader, tenant, ms, r.charge)
}

// LabelNames emits, ascending and unique, the label names of the tenant's series that satisfy the matchers.
// What emit gets is valid until it returns; its error ends the walk and is returned.
func (r *Reader) LabelNames(ctx context.Context, tenant string, ms []model.Matcher, emit func(name []byte) error) error {
	return series.Lister{Reader: r.Reader, Charge: r.charge}.Names(ctx, tenant, ms, emit)
}

// LabelValues emits, ascending and unique, the values of one label among the tenant's series that satisfy the
// matchers. What emit gets is valid until it returns; its error ends the walk and is returned.
func (r *Reader) LabelValues(ctx context.Context, tenant, name string, ms []model.Matcher, emit func(value []byte) error) error {
	return series.Lister{Reader: r.Reader, Charge: r.charge}.Values(ctx, tenant, name, ms, emit)
}

// LabelCounts emits labels of the tenant's series with the number of series that have each: of one name, or
// of all. See [series.Lister.Counts].
func (r *Reader) LabelCounts(ctx context.Context, tenant, name string, emit func(name, value []byte, series uint64) error) error {
	return series.Lister{Reader: r.Reader, Charge: r.charge}.Counts(ctx, tenant, name, emit)
}

// Keys walks the keys of a tenant in order. Before the first Next, SeekGE or Find the cursor stands on no
// key.
func (r *Reader) Keys(ctx context.Context, tenant string) *series.KeyCursor {
	return series.NewKeyCursor(ctx, r.Reader, tenant)
}

// SeriesAt reads keys by rank, and labels if they are wanted. Ascending ranks are cheap.
func (r *Reader) SeriesAt(ctx context.Context, tenant string, labels bool) *series.SeriesCursor {
	return series.NewSeriesCursor(ctx, r.Reader, tenant, labels)
}

// Active returns those of the ranks, ascending, that may have rows within rg, and uses the memory of ranks
// for them. A part without masks knows nothing and returns all.
func (r *Reader) Active(ctx context.Context, ranks file.Ranks, rg model.TimeRange) (file.Ranks, error) {
	return series.Active(ctx, r.Reader, ranks, rg)
}

// RowsAt reads the rows of a family within rg by rank. Ascending ranks are cheap; pages without a row in rg
// are not read.
func (r *Reader) RowsAt(ctx context.Context, f model.Family, rg model.TimeRange) *samples.Cursor {
	return samples.NewCursor(ctx, r.Reader, f, rg)
}

// TextAt reads the lines of a request's range by rank. It uses the range, text filter, quota and cost of
// the request. Ascending ranks are cheap: they read index pages and, where several series share a page, its
// counts and times. known is the result of PrefetchChunks and may be nil. order is the order of the chunks.
// named adds the name of the part to errors of their pages.
func (r *Reader) TextAt(ctx context.Context, req *model.Request, known *text.Verdicts, order uint64, named func(error) error) *text.Cursor {
	return text.NewCursor(ctx, r.Reader, req, known, order, named)
}

// PrefetchChunks prefetches what the Chunks of the ranks will read. If there are filters and they rule out
// nearly all units, it asks them first and leaves only the other units to the cursors.
func (r *Reader) PrefetchChunks(ctx context.Context, ranks file.Ranks, req *model.Request) (*text.Verdicts, error) {
	return text.Prefetch(ctx, r.Reader, ranks, req)
}

// PrefetchSeries prefetches what a walk over the series of the ranks will read: keys, labels if they are
// wanted, and the rows of a family within rg, unless that is 0.
func (r *Reader) PrefetchSeries(ctx context.Context, ranks file.Ranks, labels bool, f model.Family, rg model.TimeRange) error {
	return r.Announce(ctx, func() ([]file.Addr, error) { return r.SeriesPages(ctx, ranks, labels, f, rg) })
}

// FetchValues fetches what LabelValues without matchers will read.
func (r *Reader) FetchValues(ctx context.Context, tenant, name string) error {
	return series.PrefetchValues(ctx, r.Reader, tenant, name)
}

// FetchMasks fetches what Active will read.
func (r *Reader) FetchMasks(ctx context.Context, ranks file.Ranks, rg model.TimeRange) error {
	return series.PrefetchMasks(ctx, r.Reader, ranks, rg)
}

// rowSection returns the section of a family's rows.
func rowSection(f model.Family) *file.Section {
	if f == model.Text {
		return text.Section
	}
	return samples.SectionOf(f)
}
