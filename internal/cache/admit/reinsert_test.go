package admit

import (
	"errors"
	"slices"
	"testing"
)

// TestReinsert: the most used values are written first, the oldest of them before others, and no more bytes
// than the share of the segment.
func TestReinsert(t *testing.T) {
	uses, bytes := []int{0, 1, 3, 1, 2, 3}, []int64{5, 10, 10, 10, 25, 10}
	for _, c := range []struct {
		segment int64
		refused int // is not written, as if it were damaged
		want    []int
	}{
		{1000, -1, []int{2, 5, 4, 1, 3}},
		{100, -1, []int{2, 5, 1, 3}}, // 40 bytes: value 4 does not fit
		{100, 2, []int{5, 4}},
		{50, -1, []int{2, 5}},
		{24, -1, nil},
	} {
		left := slices.Clone(uses)
		var got []int
		err := Reinsert(c.segment, len(left), func(i int) (int, int64) { return left[i], bytes[i] }, func(i int) (bool, error) {
			if i == c.refused {
				return false, nil
			}
			left[i] = 0
			got = append(got, i)
			return true, nil
		})
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("a segment of %d bytes, %d refused: %d, %v, expected %d", c.segment, c.refused, got, err, c.want)
		}
	}
	full := errors.New("full")
	if err := Reinsert(100, 1, func(int) (int, int64) { return 1, 1 }, func(int) (bool, error) { return false, full }); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}
