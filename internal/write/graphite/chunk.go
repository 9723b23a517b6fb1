package graphite

import (
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

const (
	// maxRows and maxLabelBytes bound a chunk. It is large enough that many rows share one sync, and
	// small enough that the chunks of a thousand connections fit in memory.
	maxRows       = 16 << 10
	maxLabelBytes = 1 << 20
	// chunkRowBytes is the memory of a row without its name in the chunk. That in the batch that is made from it
	// is as much. rowBytes is that of both, and of its push.
	chunkRowBytes = model.KeyBytes + 4 + 8 + 8
	rowBytes      = 2*chunkRowBytes + write.ResolveBytes
)

// chunk holds parsed rows and the names of their series until they are durable. It is the
// [model.LabelSource] of the batch that is made from it.
type chunk struct {
	labels []byte
	// ends has the end in labels of each row's labels. With the bit tagged set they are canonical
	// labels, otherwise a bare name.
	ends   []uint32
	keys   []model.Key
	times  []int64
	values []uint64
	// grants are the reservations from the byte budget for the rows.
	grants []*write.Grant
	// builtLabels holds the labels that CanonicalLabels returns.
	builtLabels []byte
	// granted is the size of the grant of a chunk that reserves its own memory; it has only one.
	granted int64
	// pushing is what the push of the chunk has reserved besides.
	pushing labelReservation
}

const tagged = 1 << 31

var nameLabel = []byte(model.NameLabel)

func (c *chunk) rows() int { return len(c.keys) }

func (c *chunk) full() bool { return len(c.keys) >= maxRows || len(c.labels) >= maxLabelBytes }

// isHalfFull reports whether the chunk is half full in rows or in bytes of names, so that it need not wait
// for more rows.
func (c *chunk) isHalfFull() bool {
	return len(c.keys) >= maxRows/2 || len(c.labels) >= maxLabelBytes/2
}

// bytes returns the memory that the chunk and its batch use.
func (c *chunk) bytes() int64 { return int64(len(c.labels) + rowBytes*len(c.keys)) }

func (c *chunk) addName(name []byte, k model.Key, t int64, v uint64) {
	c.labels = append(c.labels, name...)
	c.ends = append(c.ends, uint32(len(c.labels)))
	c.keys = append(c.keys, k)
	c.times = append(c.times, t)
	c.values = append(c.values, v)
}

func (c *chunk) addLabels(l model.Labels, k model.Key, t int64, v uint64) {
	c.addName(l, k, t, v)
	c.ends[len(c.ends)-1] |= tagged
}

var _ write.CanonicalSource = (*chunk)(nil)

// labelsAt returns the canonical labels of row i if it has tags, and otherwise its name.
func (c *chunk) labelsAt(i int) []byte {
	begin := uint32(0)
	if i > 0 {
		begin = c.ends[i-1] &^ tagged
	}
	return c.labels[begin : c.ends[i]&^tagged]
}

// CanonicalLabels returns the labels of row i.
func (c *chunk) CanonicalLabels(i int) model.Labels {
	bytes := c.labelsAt(i)
	if c.ends[i]&tagged != 0 {
		return model.Labels(bytes)
	}
	const most = 0x7f - 4 - len(model.NameLabel) // every length fits in one byte
	if len(bytes) > most {
		return nil
	}
	c.builtLabels = append(c.builtLabels[:0], 0x0a, byte(4+len(model.NameLabel)+len(bytes)), 0x0a, byte(len(model.NameLabel)))
	c.builtLabels = append(append(c.builtLabels, model.NameLabel...), 0x12, byte(len(bytes)))
	c.builtLabels = append(c.builtLabels, bytes...)
	return model.Labels(c.builtLabels)
}

// BuildLabels adds the labels of row i.
func (c *chunk) BuildLabels(i int, b *model.LabelsBuilder) {
	bytes := c.labelsAt(i)
	if c.ends[i]&tagged == 0 {
		b.Add(nameLabel, bytes)
		return
	}
	for name, value, rest, ok := model.Labels(bytes).Next(); ok; name, value, rest, ok = rest.Next() {
		b.Add(name, value)
	}
}

// fill copies all rows into a batch. The copy is needed because batches and their memory belong to the
// write path.
func (c *chunk) fill(b *model.Batch) {
	b.Keys = append(b.Keys, c.keys...)
	b.Samples.Times = append(b.Samples.Times, c.times...)
	b.Samples.Values = append(b.Samples.Values, c.values...)
	for i := range c.keys {
		b.Samples.Ends = append(b.Samples.Ends, uint32(i+1))
	}
	b.Source = c
}

// memory returns the bytes that an empty chunk keeps allocated.
func (c *chunk) memory() int { return cap(c.labels) + chunkRowBytes*cap(c.keys) }

// reset empties the chunk, keeps its memory and releases its grants.
func (c *chunk) reset() {
	for _, g := range c.grants {
		g.Release()
	}
	clear(c.grants)
	c.grants, c.granted = c.grants[:0], 0
	c.labels, c.ends = c.labels[:0], c.ends[:0]
	c.keys, c.times, c.values = c.keys[:0], c.times[:0], c.values[:0]
}
