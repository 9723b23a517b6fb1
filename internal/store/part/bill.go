package part

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/series"
	"github.com/shaledb/shale/internal/store/part/text"
)

// What a query would read of lines; see package text.
type (
	TextEstimate = text.Estimate
	Ledger       = text.Ledger
)

// SeriesPages returns the pages that a walk over the series of the ranks reads: keys, labels if they are
// wanted, and the rows of a family within rg, unless that is 0. It reads index pages only.
func (r *Reader) SeriesPages(ctx context.Context, ranks Ranks, labels bool, f model.Family, rg model.TimeRange) ([]Addr, error) {
	pages, err := r.RankPages(ctx, nil, series.KeySection, ranks, nil)
	if err == nil && labels && r.Meta().Labels {
		pages, err = r.RankPages(ctx, pages, series.LabelSection, ranks, nil)
	}
	if err == nil && f != 0 {
		pages, err = r.RankPages(ctx, pages, rowSection(f), ranks, &rg)
	}
	return pages, err
}

// EstimateText lists the chunks of a request for the series of the ranks, and tells a ledger which pages it
// would read. order is the order of the chunks, and cut says that rows of the part are deleted.
func (r *Reader) EstimateText(ctx context.Context, ranks Ranks, req *model.Request, order uint64, cut bool, l Ledger) (*TextEstimate, error) {
	return text.NewEstimate(ctx, r.Reader, ranks, req, order, cut, l)
}
