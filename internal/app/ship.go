package app

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/head"
)

// shipper takes the head's blocks to the bucket and then to the catalogue.
type shipper struct {
	fs      vfs.FS
	bucket  bucket.Bucket
	catalog *catalog.Catalog
	wrote   func(bytes int64) // to the bucket, which may lie in the data folder
}

// Ship uploads and commits a block. The content of the block determines its id, so a repeated Ship overwrites
// the same object.
func (s *shipper) Ship(ctx context.Context, b head.Block) error {
	m := &b.Meta
	block := catalog.Block{
		ID:   catalog.BlockID(m.Node, m.Epoch, m.Signal, catalog.DefaultGroup, m.Range, m.SeqLo, m.SeqHi, uint32(b.Cut)),
		Node: m.Node, Signal: m.Signal, Range: m.Range, Epoch: m.Epoch, SeqLo: m.SeqLo, SeqHi: m.SeqHi,
		KeyMin: b.KeyMin, KeyMax: b.KeyMax, Series: m.Series, Samples: m.Samples, Lines: m.Text, LineBytes: m.TextBytes,
		Bytes: b.Size, Created: m.Created,
	}
	for _, t := range m.Tenants {
		block.Tenants = append(block.Tenants, t.Name)
	}
	return s.catalog.Ship(ctx, block, func(ctx context.Context) error {
		f, err := s.fs.Open(b.File)
		if err != nil {
			return fmt.Errorf("%w: block %s: %v", model.ErrTransient, b.File, err)
		}
		s.wrote(b.Size)
		err = s.bucket.Put(ctx, catalog.ObjectName(block.ID), io.NewSectionReader(f, 0, b.Size), b.Size)
		return errors.Join(err, f.Close())
	})
}
