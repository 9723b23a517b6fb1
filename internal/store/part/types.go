package part

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
	"github.com/shaledb/shale/internal/store/part/samples"
	"github.com/shaledb/shale/internal/store/part/series"
	"github.com/shaledb/shale/internal/store/part/text"
)

// What a part consists of and how its pages are read; see package file.
type (
	Meta       = file.Meta
	Tenant     = file.Tenant
	Source     = file.Source
	Windows    = file.Windows
	Ranks      = file.Ranks
	Addr       = file.Addr
	Pages      = file.Pages
	Fetcher    = file.Fetcher
	Prefetcher = file.Prefetcher
	Fetch      = file.Fetch
	ReadRange  = file.ReadRange
)

// Cursors over series and rows; see packages series and samples.
type (
	KeyCursor    = series.KeyCursor
	SeriesCursor = series.SeriesCursor
	RowCursor    = samples.Cursor
)

// Lines of logs; see package text.
type (
	Text         = text.Series
	TextRun      = text.Run
	TextPiece    = text.Piece
	BoundedText  = text.Bounded
	TextBlamer   = text.Blamer
	TextCursor   = text.Cursor
	TextVerdicts = text.Verdicts
)

// TextOfRows returns rows in memory as text. The rows must not change as long as the result is used.
func TextOfRows(r *model.TextRows) Text { return text.OfRows(r) }

// RunOfRows returns a walk over rows in memory.
func RunOfRows(r *model.TextRows) TextRun { return text.RunOfRows(r) }

// HasText reports whether any input has a row within clip. It mostly follows from their extents.
func HasText(ctx context.Context, texts []Text, clip model.TimeRange) (bool, error) {
	return text.HasRows(ctx, texts, clip)
}

// DecodePage returns the payload of a page of any section from its stored bytes. The payload may alias
// stored. Its size is bounded before anything is allocated.
func DecodePage(stored []byte) ([]byte, error) { return lines.DecodePage(stored) }

// FetchFile reads pages of a file. The counter, unless it is nil, counts them.
func FetchFile(r io.ReaderAt, c *atomic.Int64) Fetch { return file.FetchFile(r, c) }
