package writetest

import (
	"context"

	"github.com/shaledb/shale/internal/model"
)

// Known is a head that knows every series, and a journal that stores nothing.
type Known struct{}

// Resolve reports that all series are known.
func (Known) Resolve(_ *model.Batch, dst []uint32) ([]uint32, error) { return dst, nil }

// Append stores nothing.
func (Known) Append(context.Context, *model.Batch) error { return nil }

// Unknown is a head that knows no series.
type Unknown struct{}

// Resolve reports that all series are new.
func (Unknown) Resolve(b *model.Batch, dst []uint32) ([]uint32, error) {
	for i := range b.Keys {
		dst = append(dst, uint32(i))
	}
	return dst, nil
}
