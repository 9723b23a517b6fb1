package write

import (
	"unsafe"

	"github.com/shaledb/shale/internal/model"
)

// roomStep is the least number of bytes that a Room reserves at a time.
const roomStep = 256 << 10

// Room reserves the memory of a batch that a receiver fills, before any of it is allocated.
//
// An array whose memory is that of a batch of before is reserved as it is filled. A new one is reserved in
// whole before it is made. The old one is alive while it is copied, and garbage afterwards. So what is alive
// is at most twice what is reserved, and all arrays of a request together at most thrice. They are more where
// memory is refused for twice as many elements, and an array grows by less.
type Room struct {
	batch             *model.Batch
	reserve           func(bytes int64) error
	reserved          int64
	perSeries, perRow int64
	// series, rows and blobs are the capacities at the start; the latter two by family.
	series      int
	rows, blobs [3]int
}

// Start begins with an empty batch. A series takes perSeries bytes, and a row perRow besides its blob.
func (r *Room) Start(b *model.Batch, perSeries, perRow int64, reserve func(bytes int64) error) {
	*r = Room{batch: b, reserve: reserve, perSeries: perSeries, perRow: perRow, series: cap(b.Keys)}
	for i, f := range model.Families() {
		c := b.Columns(f)
		r.rows[i], r.blobs[i] = cap(c.Times), cap(c.Bytes)
	}
}

// Held returns how many bytes of an array count, of which the capacity was before at the start.
func Held[T any](s []T, before int) int64 {
	return held(s, before) * int64(unsafe.Sizeof(*new(T)))
}

func held[T any](s []T, before int) int64 {
	if cap(s) > before {
		return int64(cap(s))
	}
	return int64(len(s))
}

// Used returns the bytes of the batch that count.
func (r *Room) Used() int64 {
	used := r.perSeries * held(r.batch.Keys, r.series)
	for i, f := range model.Families() {
		c := r.batch.Columns(f)
		used += r.perRow*held(c.Times, r.rows[i]) + held(c.Bytes, r.blobs[i])
	}
	return used
}

// Reserve reserves memory until that many bytes are reserved.
func (r *Room) Reserve(bytes int64) error {
	if bytes <= r.reserved {
		return nil
	}
	step := max(bytes-r.reserved, roomStep)
	if err := r.reserve(step); err != nil {
		return err
	}
	r.reserved += step
	return nil
}

// Grow reserves memory for an array of have elements that shall have least or more: twice as many, or some,
// if these are more. Where that is refused it tries fewer, and at last a sixteenth more. It returns how many
// there is memory for. reserve reserves memory for n.
func Grow(have, least, some int, reserve func(n int) error) (n int, err error) {
	for _, more := range [...]int{have, have / 2, have / 4, have / 16} {
		n = max(have+more, least)
		if more == have {
			n = max(n, some)
		}
		if err = reserve(n); err == nil {
			return n, nil
		}
	}
	return 0, err
}

// MoreSeries makes room for one more series, and mostly for twice as many as there are.
func (r *Room) MoreSeries(other int64) error {
	n := len(r.batch.Keys)
	if n < cap(r.batch.Keys) {
		return nil
	}
	_, err := Grow(n, n+1, fewElements, func(n int) error { return r.Series(n, other) })
	return err
}

// MoreRows makes room for n more rows of a family, and mostly for twice as many as there are.
func (r *Room) MoreRows(f model.Family, n int, other int64) error {
	c := r.batch.Columns(f)
	if len(c.Times)+n <= cap(c.Times) {
		return nil
	}
	_, err := Grow(len(c.Times), len(c.Times)+n, fewElements, func(n int) error { return r.Rows(f, n, other) })
	return err
}

// fewElements is the least room that MoreSeries and MoreRows make, if there is memory for it.
const fewElements = 64

// Series makes room for n series in all. The receiver uses other bytes besides the batch, here and below.
func (r *Room) Series(n int, other int64) error {
	b := r.batch
	if n <= cap(b.Keys) {
		return nil
	}
	if err := r.Reserve(r.Used() + other + r.perSeries*(int64(n)-held(b.Keys, r.series))); err != nil {
		return err
	}
	b.Keys = model.Sized(b.Keys, n)
	return nil
}

// Rows makes room for n rows of a family in all.
func (r *Room) Rows(f model.Family, n int, other int64) error {
	c := r.batch.Columns(f)
	if n <= cap(c.Times) {
		return nil
	}
	if err := r.Reserve(r.Used() + other + r.perRow*(int64(n)-held(c.Times, r.rows[f-model.Samples]))); err != nil {
		return err
	}
	c.Size(n)
	return nil
}

// CrossesStep reports whether blobs cross a multiple of 64 KiB as they grow from before bytes to after. Then
// a receiver reserves what it uses, as it does after each 256 rows.
func CrossesStep(before, after int) bool { return before>>16 != after>>16 }

// firstBlobs is the first room for blobs.
const firstBlobs = 16 << 10

// Blob makes room for a blob of at most n bytes. Blobs double their room, to most bytes in all if these are
// enough.
func (r *Room) Blob(f model.Family, n, most int, other int64) error {
	c := r.batch.Columns(f)
	n += len(c.Bytes)
	if n <= cap(c.Bytes) {
		return nil
	}
	least := n
	_, err := Grow(cap(c.Bytes), least, firstBlobs, func(n int) error {
		n = max(least, min(n, most))
		if err := r.Reserve(r.Used() + other + int64(n) - held(c.Bytes, r.blobs[f-model.Samples])); err != nil {
			return err
		}
		c.Bytes = model.Sized(c.Bytes, n)
		return nil
	})
	return err
}
