package text

import "testing"

func TestCoders(t *testing.T) {
	for _, c := range []struct{ workers, units, want int }{{1, 4, 1}, {2, 4, 2}, {9, 4, 4}, {9, 1, 1}} {
		if got := (&Writer{Workers: c.workers}).coders(c.units); got != c.want {
			t.Errorf("%d goroutines of %d code %d units, want %d", got, c.workers, c.units, c.want)
		}
	}
}
