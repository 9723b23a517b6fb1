package head

import (
	"context"
	"testing"
)

// TestLabelBytesAreGivenBack: a flush leaves nothing of what labels were counted, whether their series are
// known or there was no room for them.
func TestLabelBytesAreGivenBack(t *testing.T) {
	r := newRig(t, func(o *Options) { o.KnownBytes = 500 })
	for n := range 5 {
		for _, tenant := range []string{"a", "b", "c"} {
			r.push(tenant, 10*n, 10*n+20, int64(n), 1)
		}
		if r.metric("shale_head_label_buffer_bytes") == 0 {
			t.Error("labels are not counted")
		}
		r.must(r.head.Flush(context.Background()))
		if left := r.metric("shale_head_label_buffer_bytes"); left != 0 {
			t.Fatalf("%v bytes of labels are left after flush %d", left, n)
		}
	}
}
