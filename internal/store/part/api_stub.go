package part

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
)

var errStub = errors.New("part: not written yet")

// Compression chooses between cheap and small.
type Compression uint8

const (
	// Fast is for parts that will soon be merged: pages are stored as they are, or with s2.
	Fast Compression = iota
	// Dense is for blocks: zstd.
	Dense
)

// WriterOptions say what a part is about.
type WriterOptions struct {
	Seed         model.KeySeed
	Signal       model.Signal
	Node         string
	SeqLo, SeqHi uint64
	Level        Compression
	// Labels says that every series comes with its labels. Then the part has labels and postings.
	Labels bool
	// Created is in Unix nanoseconds.
	Created int64
}

// Writer writes one part, series after series.
type Writer struct{}

// NewWriter starts a part. Bytes go to w as pages fill; w may be unbuffered.
func NewWriter(w io.Writer, o WriterOptions) *Writer { return &Writer{} }

// Series starts the next series; (tenant, key) must ascend. l is nil if and only if the part has no labels.
func (w *Writer) Series(tenant string, k model.Key, l model.Labels) error { return errStub }

// Samples adds rows of the current series: ascending, unique times, after those that it has.
func (w *Writer) Samples(r *model.Rows) error { return errStub }

// Finish writes what is left, and the footer. It neither syncs nor closes.
func (w *Writer) Finish() (Meta, int64, error) { return Meta{}, 0, errStub }

// Addr is the place of a page in its file. Len is the length of the stored page with its envelope.
type Addr struct {
	Off int64
	Len uint32
}

// Pages gives pages of one file, decoded: checksum verified, decompressed. What it returns is never changed and may be
// shared.
type Pages interface {
	Page(ctx context.Context, a Addr) ([]byte, error)
}

// FilePages reads and decodes a page each time it is asked for one. The counter, if not nil, counts them.
func FilePages(r io.ReaderAt, c *atomic.Int64) Pages { return nil }

// DecodePage gives the payload of a page from its stored bytes.
func DecodePage(stored []byte) ([]byte, error) { return nil, errStub }

// ReadRange reads exactly n bytes at an offset of a file or an object.
type ReadRange func(ctx context.Context, off, n int64) ([]byte, error)

// Reader reads one part. It holds the footer, reads pages on demand and may be used by several goroutines; its cursors
// may not.
type Reader struct{}

// Open reads the footer of a file.
func Open(ctx context.Context, r io.ReaderAt, size int64) (*Reader, error) { return nil, errStub }

// OpenWith reads the footer through read, with one or two requests at the end of the object; pages come from p.
func OpenWith(ctx context.Context, p Pages, read ReadRange, size int64) (*Reader, error) {
	return nil, errStub
}

// Meta returns what the part says of itself. It must not be changed.
func (r *Reader) Meta() *Meta { return nil }

// Bind returns a reader of the same part that takes its pages from p.
func (r *Reader) Bind(p Pages) *Reader { return nil }

// Ranks are positions in the key column of a part, ascending.
type Ranks []uint32

// Keys walks the keys of a tenant.
func (r *Reader) Keys(ctx context.Context, tenant string) *KeyCursor { return nil }

// KeyCursor walks the keys of one tenant in order.
type KeyCursor struct{}

// Next moves to the next key.
func (c *KeyCursor) Next() bool { return false }

// SeekGE moves to the first key that is not less than k.
func (c *KeyCursor) SeekGE(k model.Key) bool { return false }

// Key returns the key at the cursor.
func (c *KeyCursor) Key() model.Key { return model.Key{} }

// Rank returns the rank of the key at the cursor.
func (c *KeyCursor) Rank() uint32 { return 0 }

// Err returns the error that ended the walk, if any.
func (c *KeyCursor) Err() error { return errStub }

// Select returns the ranks of the tenant's series that satisfy all matchers.
func (r *Reader) Select(ctx context.Context, tenant string, ms []model.Matcher) (Ranks, error) {
	return nil, errStub
}

// SeriesAt reads keys and labels by rank. Ascending ranks are cheap.
func (r *Reader) SeriesAt(ctx context.Context, tenant string) *SeriesCursor { return nil }

// SeriesCursor is placed on one series of a tenant after the other.
type SeriesCursor struct{}

// Seek moves to a rank of the tenant.
func (c *SeriesCursor) Seek(rank uint32) error { return errStub }

// Key returns the key of the series.
func (c *SeriesCursor) Key() model.Key { return model.Key{} }

// Labels returns the labels of the series; valid until Seek.
func (c *SeriesCursor) Labels() model.Labels { return nil }

// SamplesAt reads rows within rg by rank. Ascending ranks are cheap.
func (r *Reader) SamplesAt(ctx context.Context, rg model.TimeRange) *SampleCursor { return nil }

// SampleCursor reads the rows of one series after the other.
type SampleCursor struct{}

// AppendRows appends the rows of a series within the cursor's range.
func (c *SampleCursor) AppendRows(rank uint32, dst *model.Rows) error { return errStub }

// LabelNames emits, ascending and unique, the label names of the tenant's series that satisfy the matchers.
func (r *Reader) LabelNames(ctx context.Context, tenant string, ms []model.Matcher, emit func(name []byte) error) error {
	return errStub
}

// LabelValues emits, ascending and unique, the values of one label among the tenant's series that satisfy the matchers.
func (r *Reader) LabelValues(ctx context.Context, tenant, name string, ms []model.Matcher, emit func(value []byte) error) error {
	return errStub
}

// Stream walks series in the order of (tenant, key). What it returns is valid until Next.
type Stream interface {
	Next(ctx context.Context) bool
	Tenant() string
	Key() model.Key
	// Labels returns nil where there are none.
	Labels() model.Labels
	Rows() *model.Rows
	Err() error
}

// Stream walks the whole part.
func (r *Reader) Stream() Stream { return nil }

// MergeOptions are hooks of a merge.
type MergeOptions struct {
	// OnCollision is told of two label sets under one key. The first stays.
	OnCollision func(tenant string, k model.Key, kept, dropped model.Labels)
}

// Merge joins streams, oldest first. Of one series the rows are concatenated oldest first and normalised, the first
// labels stay. What emit gets is valid until it returns.
func Merge(ctx context.Context, inputs []Stream, emit func(tenant string, k model.Key, l model.Labels, rows *model.Rows) error, o MergeOptions) error {
	return errStub
}

// Check reads the whole part and verifies everything that can be verified.
func Check(ctx context.Context, r *Reader) error { return errStub }

// Dump writes every byte of the part with its meaning.
func Dump(ctx context.Context, w io.Writer, r *Reader) error { return errStub }
