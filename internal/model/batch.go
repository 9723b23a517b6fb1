package model

// Batch is one write request as columns: one tenant, one signal, any number of series. A receiver fills it
// from wire bytes without an allocation per row. The write path adds the labels of new series, the journal
// stores the batch, and the head applies it.
//
// Keys may contain a series more than once.
type Batch struct {
	Tenant string
	Signal Signal

	Keys []Key
	// Samples and Exemplars are rows of metrics, and Text is rows of logs, of KindText.
	Samples, Exemplars, Text Columns

	// Source gives the labels of any series until the push of the batch returns. It identifies series i by
	// Origins[i], or by i while Origins is empty, which means that no series has been dropped.
	Source  LabelSource
	Origins []uint32

	// Labels are the labels stored with the batch: those of each series whose labels may not be durable yet.
	// The write path fills them.
	Labels LabelTable

	// Control is set in a record that changes the store besides adding rows; such a record has no rows.
	Control Control
}

// Control is an order to the store that takes its place among the batches of a journal.
type Control struct {
	Kind ControlKind // 0: there is none
	Body []byte      // as package store/deletion writes it
}

// ControlKind says what a control record does.
type ControlKind byte

// The kinds.
const (
	ControlDelete ControlKind = 1
	ControlCancel ControlKind = 2
)

// LabelSource materialises labels from wire bytes that the receiver keeps until the push has returned.
type LabelSource interface {
	// BuildLabels adds the labels of series i of the batch to b. It is called only for new series.
	BuildLabels(i int, b *LabelsBuilder)
}

// Columns are the rows of one family, in the order of the batch's Keys. Keys[i] has the rows [Ends[i-1],
// Ends[i]), where Ends[-1] is 0. Ends is as long as Keys, or empty while the family has no rows.
type Columns struct {
	Rows
	Ends []uint32
}

// Begin returns the index of the first row of series i.
func (c *Columns) Begin(i int) uint32 {
	if i == 0 || len(c.Ends) == 0 {
		return 0
	}
	return c.Ends[i-1]
}

// End returns the index after the last row of series i.
func (c *Columns) End(i int) uint32 {
	if len(c.Ends) == 0 {
		return 0
	}
	return c.Ends[i]
}

// endSeries closes series n; the first is 0. The ends get as much room as there is for series.
func (c *Columns) endSeries(n, room int) {
	if len(c.Times) == 0 {
		return
	}
	if cap(c.Ends) < room {
		c.Ends = Sized(c.Ends, room)
	}
	for len(c.Ends) < n {
		c.Ends = append(c.Ends, 0)
	}
	c.Ends = append(c.Ends, uint32(len(c.Times)))
}

// Reset empties the columns and keeps their memory.
func (c *Columns) Reset() {
	c.Rows.Reset()
	c.Ends = c.Ends[:0]
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.Tenant, b.Signal, b.Source = "", 0, nil
	b.Keys, b.Origins = b.Keys[:0], b.Origins[:0]
	b.Samples.Reset()
	b.Exemplars.Reset()
	b.Text.Reset()
	b.Labels.Reset()
	b.Control = Control{}
}

// Columns returns the columns of a family.
func (b *Batch) Columns(f Family) *Columns {
	switch f {
	case Exemplars:
		return &b.Exemplars
	case Text:
		return &b.Text
	}
	return &b.Samples
}

// Rows returns the number of rows of all families.
func (b *Batch) Rows() int { return b.Samples.Len() + b.Exemplars.Len() + b.Text.Len() }

// BuildLabels adds the labels of series i to lb.
func (b *Batch) BuildLabels(i int, lb *LabelsBuilder) {
	if len(b.Origins) > 0 {
		i = int(b.Origins[i])
	}
	b.Source.BuildLabels(i, lb)
}

// AddSample appends a series with a single row.
func (b *Batch) AddSample(k Key, t int64, v uint64) {
	b.Samples.Append(t, v, 0)
	b.EndSeries(k)
}

// EndSeries closes a series, whose rows are those appended to the columns since the end of the previous one.
func (b *Batch) EndSeries(k Key) {
	b.Keys = append(b.Keys, k)
	n, room := len(b.Keys)-1, cap(b.Keys)
	b.Samples.endSeries(n, room)
	b.Exemplars.endSeries(n, room)
	b.Text.endSeries(n, room)
}

// SizeAs makes room for a copy of o.
func (b *Batch) SizeAs(o *Batch) {
	b.Keys, b.Origins = Sized(b.Keys, len(o.Keys)), Sized(b.Origins, len(o.Keys))
	for _, f := range Families() {
		c, from := b.Columns(f), o.Columns(f)
		c.Size(from.Len())
		c.Bytes = Sized(c.Bytes, len(from.Bytes))
	}
	t := &b.Labels
	t.Series, t.Ends, t.Bytes = Sized(t.Series, o.Labels.Len()), Sized(t.Ends, o.Labels.Len()), Sized(t.Bytes, len(o.Labels.Bytes))
}

// KeepRows drops the rows for which keep is false, the series that have no row left, and their labels.
func (b *Batch) KeepRows(keep func(f Family, series, row int) bool) {
	if len(b.Origins) == 0 {
		b.Origins = Sized(b.Origins, len(b.Keys))
		for i := range b.Keys {
			b.Origins = append(b.Origins, uint32(i))
		}
	}
	// The labels move down in place: a set that is kept never overwrites one that is still to be read.
	labels := LabelTable{Series: b.Labels.Series[:0], Ends: b.Labels.Ends[:0], Bytes: b.Labels.Bytes[:0]}
	beginLabels := uint32(0)
	var next [families]int // rows of each family kept so far
	var begin [families]int
	nextLabels, series := 0, 0
	for i := range b.Keys {
		any := false
		for n, f := range Families() {
			c := b.Columns(f)
			end := int(c.End(i))
			for j := begin[n]; j < end; j++ {
				if keep(f, i, j) {
					c.move(next[n], j)
					next[n]++
					any = true
				}
			}
			begin[n] = max(begin[n], end)
		}
		hasLabels := nextLabels < b.Labels.Len() && b.Labels.Series[nextLabels] == uint32(i)
		if any {
			b.Keys[series], b.Origins[series] = b.Keys[i], b.Origins[i]
			for n, f := range Families() {
				if c := b.Columns(f); len(c.Ends) > 0 {
					c.Ends[series] = uint32(next[n])
				}
			}
			series++
		}
		if hasLabels {
			end := b.Labels.Ends[nextLabels]
			if any {
				labels.Append(uint32(series-1), Labels(b.Labels.Bytes[beginLabels:end]))
			}
			beginLabels = end
			nextLabels++
		}
	}
	b.Keys, b.Origins = b.Keys[:series], b.Origins[:series]
	for n, f := range Families() {
		c := b.Columns(f)
		if c.Truncate(next[n]); len(c.Ends) > 0 {
			c.Ends = c.Ends[:series]
		}
	}
	b.Labels = labels
}

// LabelTable holds the labels of some series of a batch: Series[i] is an index into the batch's Keys, and its
// labels are Bytes[Ends[i-1]:Ends[i]] in canonical form.
type LabelTable struct {
	Series []uint32
	Ends   []uint32
	Bytes  []byte
}

// Reset empties the table and keeps its memory.
func (t *LabelTable) Reset() {
	t.Series, t.Ends, t.Bytes = t.Series[:0], t.Ends[:0], t.Bytes[:0]
}

// Len returns the number of label sets.
func (t *LabelTable) Len() int { return len(t.Series) }

// At returns the i-th label set. It aliases the table.
func (t *LabelTable) At(i int) Labels {
	begin := uint32(0)
	if i > 0 {
		begin = t.Ends[i-1]
	}
	return Labels(t.Bytes[begin:t.Ends[i]:t.Ends[i]])
}

// Append adds the labels of a series.
func (t *LabelTable) Append(series uint32, l Labels) {
	t.Bytes = append(t.Bytes, l...)
	t.Series = append(t.Series, series)
	t.Ends = append(t.Ends, uint32(len(t.Bytes)))
}
