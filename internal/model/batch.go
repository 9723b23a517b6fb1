package model

// Batch is one request on its way in, as columns: one tenant, one signal, any number of series. A receiver fills it
// from wire bytes without an allocation per row; the write path adds the labels of series that are new; the journal
// stores it and the head applies it.
//
// A series may stand in Keys more than once. Rows lie in the order of Keys: those of Keys[i] are
// [Ends[i-1], Ends[i]) of the columns, and Ends[-1] is 0.
type Batch struct {
	Tenant string
	Signal Signal

	Keys []Key
	Ends []uint32
	// Samples holds the rows of the family of that name. The other families get columns of their own.
	Samples Rows

	// Source gives the labels of any series of the batch for as long as the batch is being pushed. It knows series i by
	// the number Origins[i], or by i while Origins is empty: no series has been dropped.
	Source  LabelSource
	Origins []uint32

	// Labels are those that travel with the batch: of each series of which it is not yet certain that its labels are
	// durable. Filled by the write path.
	Labels LabelTable
}

// LabelSource materialises labels from wire bytes that the receiver keeps until the push has returned.
type LabelSource interface {
	// BuildLabels adds the labels of series i of the batch to b. It is asked only for series that are new.
	BuildLabels(i int, b *LabelsBuilder)
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.Tenant, b.Signal, b.Source = "", 0, nil
	b.Keys, b.Ends, b.Origins = b.Keys[:0], b.Ends[:0], b.Origins[:0]
	b.Samples.Reset()
	b.Labels.Reset()
}

// Begin returns the index of the first row of series i.
func (b *Batch) Begin(i int) uint32 {
	if i == 0 {
		return 0
	}
	return b.Ends[i-1]
}

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
	b.Keys = append(b.Keys, k)
	b.Ends = append(b.Ends, uint32(len(b.Samples.Times)))
}

// EndSeries closes a series whose rows have been appended to Samples since the last one ended.
func (b *Batch) EndSeries(k Key) {
	b.Keys = append(b.Keys, k)
	b.Ends = append(b.Ends, uint32(len(b.Samples.Times)))
}

// KeepRows drops the rows for which keep is false, the series that have no row left, and their labels.
func (b *Batch) KeepRows(keep func(series, row int) bool) {
	if len(b.Origins) == 0 {
		for i := range b.Keys {
			b.Origins = append(b.Origins, uint32(i))
		}
	}
	var labels LabelTable
	nextLabels, series, row, begin := 0, 0, 0, 0
	for i := range b.Keys {
		kept := row
		for j := begin; j < int(b.Ends[i]); j++ {
			if keep(i, j) {
				b.Samples.move(row, j)
				row++
			}
		}
		begin = int(b.Ends[i])
		hasLabels := nextLabels < b.Labels.Len() && b.Labels.Series[nextLabels] == uint32(i)
		if row > kept {
			b.Keys[series], b.Ends[series], b.Origins[series] = b.Keys[i], uint32(row), b.Origins[i]
			if hasLabels {
				labels.Append(uint32(series), b.Labels.At(nextLabels))
			}
			series++
		}
		if hasLabels {
			nextLabels++
		}
	}
	b.Keys, b.Ends, b.Origins = b.Keys[:series], b.Ends[:series], b.Origins[:series]
	b.Samples.truncate(row)
	b.Labels = labels
}

// LabelTable holds the labels of some series of a batch: Series[i] is an index into the batch's Keys, and its labels
// are Bytes[Ends[i-1]:Ends[i]] in canonical form.
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
