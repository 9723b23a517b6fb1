package receive

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// Admission gives requests their share of the byte budget before they are read.
type Admission interface {
	Limits() write.Limits
	Admit(ctx context.Context, tenant string, bytes int64) (*write.Grant, error)
}

// Store makes batches of rows durable.
type Store interface {
	Seed() model.KeySeed
	Now() int64
	Batch(tenant string, s model.Signal) *model.Batch
	Recycle(b *model.Batch)
	// Push makes a batch durable; afterwards nothing refers to the batch or its Source. After an error
	// of class transient the batch may be pushed again.
	Push(ctx context.Context, b *model.Batch) (write.Result, error)
}

// Recorder takes what a receiver knows besides rows.
type Recorder interface {
	// Rejected counts rows that the receiver left out before they came into a batch.
	Rejected(left write.Rejections)
	// Metadata takes the metadata of a metric family. It keeps none of the slices.
	Metadata(tenant string, family []byte, typ string, help, unit []byte)
}

// Sink is the write path as a receiver sees it.
type Sink interface {
	Admission
	Store
	Recorder
}

var _ Sink = (*write.Path)(nil)
