package graphite

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// rowsOf feeds so many rows of a name.
type rowsOf struct {
	name string
	n    int
}

func (r *rowsOf) feed(c *chunk) (more bool) {
	for ; r.n > 0 && !c.full(); r.n-- {
		c.addName([]byte(r.name), model.Key{Hi: 1, Lo: uint64(r.n)}, testNow, 0)
	}
	return r.n > 0
}

// TestLingerIsForRoom: a chunk that is full does not wait for more rows, whether rows or their names
// fill it.
func TestLingerIsForRoom(t *testing.T) {
	for _, f := range []*rowsOf{{"a", 3 * maxRows}, {strings.Repeat("long", 1000), 3 * maxLabelBytes / 4000}} {
		s := newStore()
		s.ForgedKeys = true
		b := start(t, s, Options{}, write.Limits{})
		g := newQueue(b.Listener, model.DefaultTenant, b.metrics.tcp, 0, time.Hour)
		added, pushed := make(chan bool), make(chan struct{})
		go func() { added <- g.add(context.Background(), f, nil) }()
		<-g.wake // the chunk is full, and there are more rows
		go func() {
			defer close(pushed)
			g.wait()
			g.run(context.Background())
		}()
		select {
		case <-added:
			g.close()
		case <-time.After(20 * time.Second):
			t.Errorf("%d rows of %d bytes are left", f.n, len(f.name))
			g.close()
			<-added
		}
		<-pushed
	}
}
