package model

// StaleNaN is the bit pattern by which Prometheus marks a series that has ended.
const StaleNaN uint64 = 0x7ff0000000000002

// Rows are the samples of one series, as columns. Times are Unix nanoseconds, values the IEEE 754 bits of floats.
// Starts holds start timestamps (0: unknown) and is either empty or as long as the others.
type Rows struct {
	Times  []int64
	Values []uint64
	Starts []int64
}

// Len returns the number of rows.
func (r *Rows) Len() int { return len(r.Times) }

// Reset empties the columns and keeps their memory.
func (r *Rows) Reset() {
	r.Times, r.Values, r.Starts = r.Times[:0], r.Values[:0], r.Starts[:0]
}

// Append adds one row. A start of 0 means that none is known.
func (r *Rows) Append(t int64, v uint64, start int64) {
	if start != 0 && len(r.Starts) < len(r.Times) {
		r.padStarts()
	}
	r.Times = append(r.Times, t)
	r.Values = append(r.Values, v)
	if start != 0 || len(r.Starts) > 0 {
		r.Starts = append(r.Starts, start)
	}
}

// AppendRows adds the rows [i, j) of o.
func (r *Rows) AppendRows(o *Rows, i, j int) {
	switch {
	case len(o.Starts) > 0:
		r.padStarts()
		r.Starts = append(r.Starts, o.Starts[i:j]...)
	case len(r.Starts) > 0:
		for range j - i {
			r.Starts = append(r.Starts, 0)
		}
	}
	r.Times = append(r.Times, o.Times[i:j]...)
	r.Values = append(r.Values, o.Values[i:j]...)
}

// padStarts gives every row so far an unknown start.
func (r *Rows) padStarts() {
	for len(r.Starts) < len(r.Times) {
		r.Starts = append(r.Starts, 0)
	}
}

// Start returns the start timestamp of row i, or 0.
func (r *Rows) Start(i int) int64 {
	if len(r.Starts) == 0 {
		return 0
	}
	return r.Starts[i]
}

// Normalize brings rows that were appended in arrival order into the order of the file format: ascending times, one
// row a time. Of rows with equal times the last one stays, except that a value beats a stale marker. It works in
// place and costs one pass when the rows are in order already, as they nearly always are.
func (r *Rows) Normalize() {
	i, n := 1, len(r.Times)
	for i < n && r.Times[i-1] < r.Times[i] {
		i++
	}
	if i >= n {
		return
	}
	r.sortStable()
	out := 0
	for i := 1; i < n; i++ {
		if r.Times[i] != r.Times[out] {
			out++
			r.move(out, i)
			continue
		}
		if r.Values[i] == StaleNaN && r.Values[out] != StaleNaN {
			continue
		}
		r.move(out, i)
	}
	r.truncate(out + 1)
}

func (r *Rows) move(to, from int) {
	r.Times[to], r.Values[to] = r.Times[from], r.Values[from]
	if len(r.Starts) > 0 {
		r.Starts[to] = r.Starts[from]
	}
}

func (r *Rows) truncate(n int) {
	r.Times, r.Values = r.Times[:n], r.Values[:n]
	if len(r.Starts) > 0 {
		r.Starts = r.Starts[:n]
	}
}
