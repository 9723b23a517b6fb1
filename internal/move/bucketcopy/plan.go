package bucketcopy

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/shaledb/shale/internal/store/catalog"
)

// Plan says what a copy would do now.
type Plan struct {
	Blocks int   `json:"blocks_to_copy"`
	Bytes  int64 `json:"bytes_to_copy"`
	// Present are blocks that the target has; those of an interrupted copy are read back once more.
	Present       int   `json:"blocks_present"`
	BytesToVerify int64 `json:"bytes_to_verify"`
	Records       int   `json:"records_to_write"`
	Removed       int   `json:"records_to_remove"`
	// Requests are estimated, without retries.
	Requests Requests `json:"requests"`
	// Rate is how fast the source was read for the estimate, in bytes a second. Seconds assumes that the target
	// is as fast. 0: nothing is to be copied.
	Rate    float64 `json:"source_bytes_per_second"`
	Seconds float64 `json:"seconds"`
}

// Requests counts requests by bucket and kind.
type Requests struct {
	SourceGet    int64 `json:"source_get"`
	TargetPut    int64 `json:"target_put"`
	TargetGet    int64 `json:"target_get"`
	TargetDelete int64 `json:"target_delete"`
}

// Total returns the number of bytes that will be copied and verified, for a display of progress.
func (p *Plan) Total() int64 { return p.Bytes + p.BytesToVerify }

// Plan reads both buckets and writes nothing.
func (c *Copy) Plan(ctx context.Context) (*Plan, error) {
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	records, err := c.sourceRecords(ctx)
	if err != nil {
		return nil, err
	}
	p := &Plan{Removed: len(c.target.extra)}
	live := visible(records)
	var missing []catalog.Block
	for _, b := range live {
		present := c.target.sizes[b.ID] == b.Bytes
		if present {
			p.Present++
		} else {
			missing = append(missing, b)
			p.Blocks++
			p.Bytes += b.Bytes
			p.Requests.SourceGet += pieces(b.Bytes, pieceBytes)
		}
		if !c.target.isVerified(b.ID) {
			p.BytesToVerify += b.Bytes
			p.Requests.TargetGet += 2 + pieces(b.Bytes, largeWindow)
			p.Requests.TargetPut += 2 // the block and its marker
			p.Requests.TargetDelete++
		}
	}
	for i := range records {
		if c.target.records[records[i].ID] == nil {
			p.Records++
		}
	}
	p.Requests.SourceGet += int64(len(records))
	p.Requests.TargetGet += int64(len(records))
	p.Requests.TargetPut += 2 * int64(p.Records)
	p.Requests.TargetDelete += 2 * int64(p.Removed)
	if p.Rate, err = c.sourceRate(ctx, missing); err != nil {
		return nil, err
	}
	if p.Rate > 0 {
		p.Seconds = float64(p.Total()) / p.Rate
	}
	return p, nil
}

func pieces(size, piece int64) int64 { return (size + piece - 1) / piece }

// sourceRate reads one piece each of a few blocks at the same time, and returns bytes a second.
func (c *Copy) sourceRate(ctx context.Context, blocks []catalog.Block) (float64, error) {
	blocks = blocks[:min(len(blocks), max(1, c.Concurrency))]
	total, begun := int64(0), time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for i := range blocks {
		n := min(blocks[i].Bytes, pieceBytes)
		total += n
		g.Go(func() error {
			_, err := c.From.GetRange(ctx, catalog.ObjectName(blocks[i].ID), 0, n)
			return err
		})
	}
	if err := g.Wait(); err != nil || total == 0 {
		return 0, err
	}
	return float64(total) / time.Since(begun).Seconds(), nil
}
