package head

import (
	"fmt"
	"math"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
)

// Space is the disk space of the data folder.
type Space interface {
	// Free returns how many bytes can be reserved.
	Free() int64
	// Reserve returns an error of class transient unless there is room for that many bytes. They count until
	// release is called.
	Reserve(bytes int64) (release func(), err error)
	// ReserveAnyway reserves bytes whether or not there is room, so that others do not take what there is.
	ReserveAnyway(bytes int64) (release func())
	// Wrote is told the size of new files.
	Wrote(bytes int64)
}

// endless is space without a bound.
type endless struct{}

func (endless) Free() int64                   { return math.MaxInt64 }
func (endless) Reserve(int64) (func(), error) { return func() {}, nil }
func (endless) ReserveAnyway(int64) func()    { return func() {} }
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

// reservation is the space of a ship that is marked.
type reservation struct {
	bytes   int64
	release func()
	// unchecked says that there was too little space when the head was opened.
	unchecked bool
}

// reserve reserves space for a ship until endReservation, once. The reservation stays while finished blocks
// wait for the bucket, and count as files too: they may have to be built again. That costs writes nothing
// until the reservations exceed the margin that writes leave anyway. The caller holds merging.
func (h *Head) reserve(id shipID, bytes int64) error {
	if r := h.merging.reserved[id]; r != nil {
		return h.checkReservation(r)
	}
	release, err := h.o.Space.Reserve(bytes)
	if err == nil {
		h.merging.reserved[id] = &reservation{bytes: bytes, release: release}
	}
	return err
}

// checkReservation refuses a ship whose space was not there when the head was opened, until it is. Ships run
// one at a time, so one may use what is reserved for those that wait: when it is through, that is free again.
func (h *Head) checkReservation(r *reservation) error {
	if !r.unchecked {
		return nil
	}
	var waiting int64
	for _, other := range h.merging.reserved {
		waiting += other.bytes
	}
	if free := h.o.Space.Free(); free < r.bytes-waiting {
		return &model.LimitError{Limit: "disk", Text: fmt.Sprintf(
			"no room for the blocks of a ship: %d bytes are needed and %d can still be used; raise the limit, shorten the retention or make room on its file system",
			r.bytes, max(free+waiting, 0))}
	}
	r.unchecked = false
	return nil
}

// reserveMarked reserves the space of the ships that are marked, also if it is not there: then writes take no
// more of it, and the ship waits for the rest. Open calls it, before the journal takes writes.
func (h *Head) reserveMarked() {
	h.merging.Lock()
	defer h.merging.Unlock()
	for s := range signals {
		signal := model.Signal(s)
		for _, g := range h.signalGroups(signal) {
			in := h.marked(g)
			if len(in) == 0 {
				continue
			}
			id, bytes := shipOf(g, in), h.shipFactor()*partBytes(in)
			if h.reserve(id, bytes) != nil {
				h.merging.reserved[id] = &reservation{bytes: bytes, release: h.o.Space.ReserveAnyway(bytes), unchecked: true}
			}
		}
	}
}

func (h *Head) endReservation(id shipID) {
	if r := h.merging.reserved[id]; r != nil {
		r.release()
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
