package ingest

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
	"github.com/shaledb/shale/internal/store/topics"
)

// prime gives the head the labels that gateways will not send again soon. Labels travel with rows, and rows
// that this head will not read are in blocks of the partition: in those that were made since the labels were
// sent, or in what they were merged to.
func (p *Partition) prime(ctx context.Context) error {
	var of []catalog.Block
	var newest int64
	type journal struct {
		node  string
		epoch uint64
	}
	// A gateway may have sent labels to the epoch before, and rows that it took at that time to this one.
	mine := map[journal]bool{{p.node, p.epoch.Number}: true}
	// One that slept may have gone from an older epoch to this one at once.
	for e, of := &p.epoch, []int32{p.o.Partition}; e.Number > 1 && (e.Number == p.epoch.Number || p.o.AllLabels); {
		e, of = p.parents(e, of)
		for _, parent := range of {
			mine[journal{topics.Node(parent), e.Number}] = true
		}
	}
	for _, b := range p.o.Catalog.Live() {
		for _, s := range b.Sources {
			if mine[journal{s.Node, s.Epoch}] {
				of, newest = append(of, b), max(newest, b.Created)
				break
			}
		}
	}
	began, blocks, series := time.Now(), 0, 0
	since := newest - int64(p.o.LabelRefresh) - 2*int64(p.o.ShipEvery)
	for i := range of {
		if of[i].Created < since && !p.o.AllLabels {
			continue
		}
		n, err := p.learn(ctx, &of[i])
		if err != nil {
			return fmt.Errorf("labels of partition %d: block %s: %w", p.o.Partition, of[i].ID, err)
		}
		blocks, series = blocks+1, series+n
	}
	if blocks > 0 {
		p.o.Logger.Info("read the labels of a partition from the bucket", "partition", p.o.Partition, "blocks", blocks, "series", series,
			"took", time.Since(began).Round(time.Millisecond))
	}
	return nil
}

// learnAtOnce is the most series that are given to the head at once.
const learnAtOnce = 1 << 12

// learn gives the head the labels of the partition's series in a block, and returns their number.
func (p *Partition) learn(ctx context.Context, b *catalog.Block) (n int, err error) {
	r, err := part.Open(ctx, newChunks(ctx, p.o.Bucket, catalog.ObjectName(b.ID), b.Bytes), b.Bytes)
	if err != nil {
		return 0, err
	}
	var batch model.Batch
	keys, series := r.Keys(ctx, ""), r.SeriesAt(ctx, "", true)
	for _, t := range r.Meta().Tenants {
		batch.Tenant, batch.Signal = t.Name, b.Signal
		keys.Enter(t.Name)
		series.Enter(t.Name)
		for keys.Next() {
			k := keys.Key()
			if topics.PartitionOf(k, p.epoch.Partitions) != p.o.Partition {
				continue
			}
			if err := series.Seek(keys.Rank()); err != nil {
				return n, err
			}
			batch.Labels.Append(uint32(len(batch.Keys)), series.Labels())
			batch.EndSeries(k)
			if n++; len(batch.Keys) == learnAtOnce {
				if err := p.taught(ctx, &batch); err != nil {
					return n, err
				}
			}
		}
		if err := keys.Err(); err != nil {
			return n, err
		}
		if err := p.taught(ctx, &batch); err != nil {
			return n, err
		}
	}
	return n, nil
}

// taught gives a batch of labels to the head, and empties it.
func (p *Partition) taught(ctx context.Context, b *model.Batch) error {
	if len(b.Keys) == 0 {
		return ctx.Err()
	}
	err := p.head.Learn(ctx, b)
	tenant, signal := b.Tenant, b.Signal
	b.Reset()
	b.Tenant, b.Signal = tenant, signal
	return err
}

// chunkBytes and chunksKept bound what is read of a block at once, and kept.
const (
	chunkBytes = 1 << 20
	chunksKept = 8
)

// chunks reads an object in large pieces: the pages of keys and labels of a block lie together.
type chunks struct {
	ctx  context.Context
	b    rangeReader
	name string
	size int64
	kept map[int64][]byte
	used []int64 // the numbers of those that are kept, the longest unused first
}

type rangeReader interface {
	GetRange(ctx context.Context, name string, off, n int64) ([]byte, error)
}

func newChunks(ctx context.Context, b rangeReader, name string, size int64) *chunks {
	return &chunks{ctx: ctx, b: b, name: name, size: size, kept: map[int64][]byte{}}
}

// ReadAt is [io.ReaderAt], for one goroutine.
func (c *chunks) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		if off >= c.size {
			return n, io.EOF
		}
		data, err := c.chunk(off / chunkBytes)
		if err != nil {
			return n, err
		}
		m := copy(p[n:], data[off%chunkBytes:])
		n, off = n+m, off+int64(m)
	}
	return n, nil
}

func (c *chunks) chunk(number int64) ([]byte, error) {
	for i, u := range c.used {
		if u == number {
			c.used = append(append(c.used[:i:i], c.used[i+1:]...), number)
			return c.kept[number], nil
		}
	}
	off := number * chunkBytes
	data, err := c.b.GetRange(c.ctx, c.name, off, min(chunkBytes, c.size-off))
	if err != nil {
		return nil, err
	}
	if len(c.used) == chunksKept {
		delete(c.kept, c.used[0])
		c.used = c.used[1:]
	}
	c.kept[number], c.used = data, append(c.used, number)
	return data, nil
}
