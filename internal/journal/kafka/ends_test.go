package kafka

import "testing"

func TestEnds(t *testing.T) {
	e := make(ends, 2)
	e[0].Store(7) // what the topic had when the producer was opened
	for i, step := range []struct {
		partition int32
		offset    int64
		right     bool
	}{
		{0, 7, true}, {0, 9, true}, {1, 0, true}, {0, 8, false}, {0, -1, true}, {0, 10, true}, {1, 0, false}, {1, 1, true},
	} {
		if got := e.took(step.partition, step.offset); got != step.right {
			t.Errorf("step %d: offset %d of partition %d: %v", i, step.offset, step.partition, got)
		}
	}
	e.forget()
	if !e.took(0, 0) {
		t.Error("offset 0 after forget")
	}
}
