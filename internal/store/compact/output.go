package compact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zeebo/xxh3"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// cellOutput collects the rows of one cell. Small tenants share a block, which stays open while blocks of a
// big tenant are written.
type cellOutput struct {
	cell
	keep        time.Duration // of the series that go here; 0: of all series
	group       string
	begins      bool // it is the first output of its cell
	shared, own *blockWriter
	rows        model.SeriesRows // of the current series
}

// takes reports whether series that are kept for some time go here.
func (out *cellOutput) takes(keep time.Duration) bool { return out.keep == 0 || out.keep == keep }

// blockWriter writes a block to a local file.
type blockWriter struct {
	m     *merge
	cell  *cell
	group string
	// step is the length of the slots in seconds; 0: the rows are as they came.
	step   int64
	name   string
	file   vfs.File
	buf    []byte
	size   int64
	hash   xxh3.Hasher128
	w      *part.Writer
	tenant string

	series, tenantSeries int
	raw                  int64 // bytes added, before compression
	keyMin, keyMax       model.Key
	firstKey, lastKey    model.Key
}

func (m *merge) create(out *cellOutput) (*blockWriter, error) {
	m.c.files++
	name := m.c.o.FS.PathJoin(m.c.o.Dir, fmt.Sprintf("%08d%s", m.c.files, fileSuffix))
	f, err := m.c.o.FS.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %v", model.ErrTransient, name, err)
	}
	b := &blockWriter{m: m, cell: &out.cell, group: out.group, name: name, file: f}
	b.w = part.NewWriter(b, m.writerOptions(&out.cell))
	m.open[b] = true
	return b, nil
}

// bufferBytes is the size of the write buffer; vfs files have no buffer of their own.
const bufferBytes = 256 << 10

// Write buffers bytes of the block.
func (b *blockWriter) Write(p []byte) (int, error) {
	b.size += int64(len(p))
	_, _ = b.hash.Write(p) // never fails
	b.buf = append(b.buf, p...)
	if len(b.buf) < bufferBytes {
		return len(p), nil
	}
	return len(p), b.flush()
}

func (b *blockWriter) flush() error {
	if err := b.m.c.pace.wait(b.m.ctx, int64(len(b.buf))); err != nil {
		return err
	}
	_, err := b.file.Write(b.buf)
	b.buf = b.buf[:0]
	return err
}

// add writes a series.
func (b *blockWriter) add(tenant string, k model.Key, l model.Labels, rows *model.SeriesRows) error {
	if tenant != b.tenant {
		b.tenant, b.tenantSeries = tenant, 0
	}
	if b.series == 0 || k.Less(b.keyMin) {
		b.keyMin = k
	}
	if b.series == 0 || b.keyMax.Less(k) {
		b.keyMax = k
	}
	if b.series == 0 {
		b.firstKey = k
	}
	b.lastKey = k
	b.series++
	b.tenantSeries++
	b.raw += int64(model.KeyBytes + len(l) + len(rows.Samples.Bytes) + len(rows.Exemplars.Bytes) + 10*rows.Len())
	if err := b.w.Series(tenant, k, l); err != nil {
		return err
	}
	return b.w.Rows(rows)
}

// An estimate of the bytes that the part's writer still holds: a page of each section, and the postings of
// the tenant.
const (
	mostPending  = 192 << 10
	postingBytes = 8 // for each series
)

// bytes estimates the size of the block if it ended here. It may be too low by a few postings.
func (b *blockWriter) bytes() int64 {
	return b.size + min(mostPending, b.raw) + int64(b.tenantSeries)*postingBytes
}

// full reports whether the next series of the same tenant belongs to another block.
func (b *blockWriter) full(most int64) bool {
	return b.series >= b.m.c.o.maxSeries || b.bytes() >= most
}

// finish uploads the block and deletes its file.
func (b *blockWriter) finish(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, b.abandon()) }()
	meta, size, err := b.w.Finish()
	if err == nil {
		err = b.flush()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", b.name, classed(err))
	}
	hash := b.hash.Sum128().Bytes()
	err = b.m.upload(ctx, b.m.block(b, &meta, size), hash, func() io.Reader { return io.NewSectionReader(b.file, 0, size) })
	if err == nil && b.m.c.o.Fresh != nil {
		b.m.c.o.Fresh(ctx, &b.m.blocks[len(b.m.blocks)-1], b.file)
	}
	return err
}

// upload gives a block what all blocks of the merge have, and writes its object.
func (m *merge) upload(ctx context.Context, b catalog.Block, hash [16]byte, body func() io.Reader) error {
	b.Sources, b.OrderLo, b.OrderHi = m.sources, m.orderLo, m.orderHi
	b.Generation, b.Created = m.generation, m.created
	b.ID = catalog.MergedID(m.ids, b.Signal, b.Range, uint32(len(m.blocks)), m.generation, b.Bytes, hash)
	var done func()
	err := retry(ctx, m.c.o.firstPause, func() (err error) {
		done, err = m.c.o.Catalog.Uploading(ctx, b.ID)
		return err
	})
	if err != nil {
		return fmt.Errorf("announce the upload of %s: %w", b.ID, err)
	}
	m.uploads = append(m.uploads, done)
	if err := m.c.pace.wait(ctx, b.Bytes); err != nil {
		return err
	}
	err = retry(ctx, m.c.o.firstPause, func() error {
		return m.c.o.Bucket.Put(ctx, catalog.ObjectName(b.ID), body(), b.Bytes)
	})
	if err != nil {
		return fmt.Errorf("upload %s: %w", b.ID, err)
	}
	m.c.metrics.written.Add(float64(b.Bytes))
	m.blocks = append(m.blocks, b)
	return nil
}

// abandon closes and deletes the file. The next start deletes a file that could not be deleted.
func (b *blockWriter) abandon() error {
	if !b.m.open[b] {
		return nil
	}
	delete(b.m.open, b)
	err := b.file.Close()
	_ = b.m.c.o.FS.Remove(b.name)
	if err != nil {
		return fmt.Errorf("%w: %s: %v", model.ErrTransient, b.name, err)
	}
	return nil
}

// classed adds a class to an error of the file system.
func classed(err error) error {
	for _, class := range []error{model.ErrInvalid, model.ErrCorrupt, model.ErrTransient, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, class) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", model.ErrTransient, err)
}

// block says what a written block holds.
func (m *merge) block(b *blockWriter, meta *part.Meta, size int64) catalog.Block {
	block := catalog.Block{
		Signal: meta.Signal, Group: b.group, Level: b.cell.level, Range: meta.Range, KeyMin: b.keyMin, KeyMax: b.keyMax,
		FirstKey: b.firstKey, LastKey: b.lastKey, Series: meta.Series, Samples: meta.Samples, Lines: meta.Text, LineBytes: meta.TextBytes,
		Bytes: size,
	}
	if b.step > 0 {
		block.Resolution, block.Base, block.Policies = b.step*int64(time.Second), m.base, m.policies
	}
	for i := range meta.Tenants {
		block.Tenants = append(block.Tenants, meta.Tenants[i].Name)
	}
	return block
}
