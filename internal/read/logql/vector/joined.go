package vector

import (
	"bytes"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// Part returns count of the steps, from one on.
func (s Steps) Part(from, count int) Steps {
	return Steps{Start: s.Time(from), Step: s.Step, Count: count}
}

// Joined is a matrix that is made of matrices of parts of its steps.
type Joined struct {
	m Matrix
	// at is the index of the first series with these labels. Further ones are in next.
	at   map[string]int
	next []int // of each series, the index of the next one with the same labels; 0: there is none
}

// NewJoined returns a matrix without series.
func NewJoined(all Steps) *Joined {
	return &Joined{m: Matrix{Steps: all}, at: make(map[string]int)}
}

// joinedBytes is about what a series takes in at and next, besides its labels.
const joinedBytes = 64

// Add adds the values of a matrix whose first step is step from, and releases it. Series of the same labels
// and different steps become one; of those that share a step, the first goes to the first, as in
// [Matrix.JoinEqual]. The series of m must be sorted by labels.
func (j *Joined) Add(quota *model.Quota, m *Matrix, from int) error {
	if err := m.JoinEqual(quota); err != nil {
		return err
	}
	to := 0 // the series of the one before
	for i, s := range m.Series {
		var known bool
		switch {
		case i > 0 && bytes.Equal(m.Series[i-1].Labels, s.Labels):
			before := to
			if to = j.next[before]; to > 0 {
				known = true
			} else {
				j.next[before] = len(j.m.Series)
			}
		default:
			if to, known = j.at[string(s.Labels)]; !known {
				j.at[string(s.Labels)] = len(j.m.Series)
			}
		}
		if !known {
			to = len(j.m.Series)
			if err := j.begin(quota, s.Labels); err != nil {
				return err
			}
		}
		copied := &j.m.Series[to]
		for step := range s.Present.All() {
			copied.Values[from+step] = s.Values[step]
			copied.Present.Add(from + step)
		}
	}
	m.Release(quota)
	return nil
}

// begin adds a series without values.
func (j *Joined) begin(quota *model.Quota, labels model.Labels) error {
	series, err := newSeries(quota, labels, j.m.Steps.Count)
	if err == nil {
		err = quota.TakeBytes(joinedBytes + int64(len(labels)))
	}
	if err == nil {
		j.m.Series, j.next = append(j.m.Series, series), append(j.next, 0)
	}
	return err
}

// Copy adds n steps of a matrix, which stays as it is, from step at of it on. The first of them is step from.
// No two series of m have the same labels.
func (j *Joined) Copy(quota *model.Quota, m *Matrix, at, n, from int) error {
	for i := range m.Series {
		s := &m.Series[i]
		to, known := -1, false
		for step := at; step < at+n; step++ {
			if !s.Present.Has(step) {
				continue
			}
			if to < 0 {
				if to, known = j.at[string(s.Labels)]; !known {
					to = len(j.m.Series)
					if err := j.begin(quota, s.Labels); err != nil {
						return err
					}
					j.at[string(s.Labels)] = to
				}
			}
			j.m.Series[to].Values[from+step-at] = s.Values[step]
			j.m.Series[to].Present.Add(from + step - at)
		}
	}
	return nil
}

// Cut returns a copy of some steps of a matrix, which shares only labels with it.
func (m *Matrix) Cut(from, count int) *Matrix {
	out := &Matrix{Steps: m.Steps.Part(from, count)}
	for i := range m.Series {
		s := &m.Series[i]
		present := NewSet(count)
		for step := range count {
			if s.Present.Has(from + step) {
				present.Add(step)
			}
		}
		if !present.IsEmpty() {
			out.Series = append(out.Series, Series{s.Labels, slices.Clone(s.Values[from : from+count]), present})
		}
	}
	return out
}

// Matrix returns the matrix, whose series are sorted by labels. The memory of the joining stays charged until
// the query ends.
func (j *Joined) Matrix() *Matrix {
	j.m.SortByLabels()
	return &j.m
}
