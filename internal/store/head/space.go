package head

import (
	"math"

	"github.com/shaledb/shale/internal/store/head/local"
)

// Space is the disk space of the data folder.
type Space interface {
	// Free returns how many bytes can be reserved.
	Free() int64
	// Reserve returns an error of class transient unless there is room for that many bytes. They count until
	// release is called.
	Reserve(bytes int64) (release func(), err error)
	// Wrote is told the size of new files.
	Wrote(bytes int64)
}

// endless is space without a bound.
type endless struct{}

func (endless) Free() int64                   { return math.MaxInt64 }
func (endless) Reserve(int64) (func(), error) { return func() {}, nil }
func (endless) Wrote(int64)                   {}

// Buffered returns the bytes of the rows and labels in memory. A flush writes less than that.
func (h *Head) Buffered() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.buffers.rowBytes + h.mu.buffers.labelBytes
}

// shipFactor returns how much space a ship takes, in sizes of its parts: for the blocks, and for their
// objects if the bucket lies in the data folder.
func (h *Head) shipFactor() int64 {
	if h.o.BucketApart {
		return 1
	}
	return 2
}

// inSpace does work that writes factor times the bytes of the parts, once they are reserved.
func (h *Head) inSpace(in []*local.Part, factor int64, work func() error) error {
	release, err := h.o.Space.Reserve(factor * partBytes(in))
	if err != nil {
		return err
	}
	defer release()
	return work()
}

// reserve reserves space for a ship until endReservation, once. The reservation stays while finished blocks
// wait for the bucket, and count as files too: they may have to be built again. That costs writes nothing
// until the reservations exceed the margin that writes leave anyway. The caller holds merging.
func (h *Head) reserve(id shipID, bytes int64) error {
	if h.merging.reserved[id] != nil {
		return nil
	}
	release, err := h.o.Space.Reserve(bytes)
	if err == nil {
		h.merging.reserved[id] = release
	}
	return err
}

func (h *Head) endReservation(id shipID) {
	if release := h.merging.reserved[id]; release != nil {
		release()
		delete(h.merging.reserved, id)
	}
}

// fitting returns the oldest parts, at least one, as many as there is space for.
func (h *Head) fitting(in []*local.Part, factor int64) []*local.Part {
	free := h.o.Space.Free() / factor
	n := len(in)
	for n > 1 && partBytes(in[:n]) > free {
		n--
	}
	return in[:n]
}

func partBytes(in []*local.Part) (n int64) {
	for _, p := range in {
		n += p.Info.Bytes
	}
	return n
}
