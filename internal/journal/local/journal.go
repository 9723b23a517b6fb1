package local

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
)

// Options build a Journal.
type Options struct {
	FS vfs.FS
	// Dir is the folder of the segments. Its parent exists.
	Dir string
	// Seed is written into every segment; segments with another one are refused.
	Seed model.KeySeed
	// SegmentBytes is the size after which a new segment begins; 0 means 64 MiB.
	SegmentBytes int64
	// MaxQueueBytes bounds the encoded records that wait to be written; 0 means 16 MiB.
	MaxQueueBytes int64
	// Apply is called with every durable batch, in the order of seq, by one goroutine.
	Apply      func(seq uint64, b *model.Batch)
	Registerer prometheus.Registerer
}

var errStub = errors.New("journal: not written yet")

// Journal is the log of one process.
type Journal struct{}

// Open reads what is there. It changes nothing.
func Open(o Options) (*Journal, error) { return &Journal{}, nil }

// Replay gives every record with a sequence number of at least from to fn, in order. The batch is valid during the
// call. To be used between Open and Start.
func (j *Journal) Replay(ctx context.Context, from uint64, fn func(seq uint64, b *model.Batch) error) error {
	return errStub
}

// Start makes the journal ready for Append. The next record gets the larger of next and LastSeq()+1.
func (j *Journal) Start(next uint64) error { return errStub }

// Append returns once the batch is durable and has been applied.
func (j *Journal) Append(ctx context.Context, b *model.Batch) error { return errStub }

// Truncate deletes the segments of which every record has a sequence number of at most covered.
func (j *Journal) Truncate(covered uint64) error { return errStub }

// LastSeq returns the sequence number of the last durable record, or 0.
func (j *Journal) LastSeq() uint64 { return 0 }

// Bytes returns the size of all segments.
func (j *Journal) Bytes() int64 { return 0 }

// Close writes what waits, waits for it to be applied and gives up the files.
func (j *Journal) Close() error { return nil }
