package pressure

import "testing"

func TestSpare(t *testing.T) {
	for _, c := range []struct{ threads, machine, want int }{
		{1, 1, 2}, {2, 2, 2}, {16, 16, 4}, {64, 64, 16},
		{2, 64, 0}, {1, 2, 0}, // a limit
	} {
		if got := spare(c.threads, c.machine); got != c.want {
			t.Errorf("%d threads on %d processors: %d more, want %d", c.threads, c.machine, got, c.want)
		}
	}
}
