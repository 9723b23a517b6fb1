package file

import "github.com/shaledb/shale/internal/store/part/column"

// RankRows are the times of the rows of consecutive ranks, decoded from a page whose columns go over all its
// rows.
type RankRows struct {
	Counts []int64  // of the rows of each rank
	Begins []uint32 // the index of each rank's first row
	Times  []int64
}

// Read reads the number of ranks, the counts and the times, and returns the number of rows, which is from 1
// to most. The caller checks the scan.
func (r *RankRows) Read(ints *column.IntDecoder, s *column.Scan, object string, most int) (rows int, err error) {
	ranks := s.Below(MaxPageRanks)
	r.Counts = ints.Append(r.Counts[:0], s, ranks)
	if s.Bad || ranks == 0 {
		return 0, column.Corrupt("%s: no directory", object)
	}
	r.Begins = r.Begins[:0]
	for _, c := range r.Counts {
		if c < 0 || c > int64(most-rows) {
			return 0, column.Corrupt("%s: more than %d rows", object, most)
		}
		r.Begins = append(r.Begins, uint32(rows))
		rows += int(c)
	}
	if rows == 0 {
		return 0, column.Corrupt("%s: no rows", object)
	}
	r.Times = ints.Append(r.Times[:0], s, rows)
	return rows, nil
}

// CheckTimes verifies that the times of each rank ascend.
func (r *RankRows) CheckTimes(object string) error {
	for i := range r.Counts {
		times := r.TimesOf(i)
		for k := 1; k < len(times); k++ {
			if times[k] < times[k-1] {
				return column.Corrupt("%s: times do not ascend", object)
			}
		}
	}
	return nil
}

// TimesOf returns the times of the rows of rank i.
func (r *RankRows) TimesOf(i int) []int64 { return r.Times[r.Begins[i]:][:r.Counts[i]] }
