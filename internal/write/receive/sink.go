package receive

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// Admission reserves memory from the byte budget before requests are read.
type Admission interface {
	Limits(tenant string) write.Limits
	Admit(ctx context.Context, tenant string, bytes int64) (*write.Grant, error)
}

// Store makes batches of rows durable.
type Store interface {
	Seed() model.KeySeed
	Now() int64
	Batch(tenant string, s model.Signal) *model.Batch
	Recycle(b *model.Batch)
	// Push makes a batch durable. Afterwards nothing refers to the batch or its Source. After an error
	// of class transient the batch may be pushed again.
	Push(ctx context.Context, b *model.Batch) (write.Result, error)
}

// Recorder takes what a receiver knows apart from rows.
type Recorder interface {
	// Rejected counts rows of a tenant that the receiver dropped before they came into a batch.
	Rejected(tenant string, left write.Rejections)
	// LogRefusal logs rows that a sender was refused for a reason, with the text about the first of them, or
	// the request if there are no rows. It leaves most of a flood out.
	LogRefusal(tenant, reason string, n write.Counts, first string)
	// Metadata stores the metadata of a metric family. It keeps none of the slices.
	Metadata(tenant string, family []byte, typ string, help, unit []byte)
}

// Sink is the write path as a receiver sees it.
type Sink interface {
	Admission
	Store
	Recorder
}

var _ Sink = (*write.Path)(nil)
