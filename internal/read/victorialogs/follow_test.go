package victorialogs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// following is a server with lines, and a source that follows them.
type following struct {
	*world
	mu     sync.Mutex
	rows   []string
	status int // 0: the rows
	looks  int

	got   chan string
	ended chan error
	stop  context.CancelFunc
	req   *model.Request
}

func newFollowing(t *testing.T, rows ...string) *following {
	f := &following{rows: rows, got: make(chan string, 1000), ended: make(chan error, 1)}
	f.world = newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.status != 0 {
			http.Error(rw, "down", f.status)
			return
		}
		f.looks++
		io.WriteString(rw, strings.Join(f.rows, ""))
	})
	f.followEvery = time.Millisecond
	f.req = request()
	f.req.Matchers = []model.Matcher{{Name: "app", Op: model.MatchEqual, Value: "web", Match: func(v string) bool { return v == "web" }}}
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	ready := make(chan struct{})
	go func() {
		f.ended <- f.Follow(ctx, f.req, func() { close(ready) }, func(b *model.Batch) {
			for i := range b.Keys {
				for k := int(b.Text.Begin(i)); k < int(b.Text.End(i)); k++ {
					l, err := model.SplitLine(b.Text.Blob(k))
					if err != nil {
						panic(err)
					}
					f.got <- fmt.Sprintf("%s%s", l.Text, l.Metadata)
				}
			}
		}, nil)
	}()
	select {
	case <-ready:
	case err := <-f.ended:
		t.Fatal(err)
	}
	return f
}

func (f *following) set(status int, rows ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status, f.rows = status, append(f.rows, rows...)
}

func (f *following) wait(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-f.got:
		if got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatalf("%s did not come", want)
	}
}

// end ends it, and checks that nothing else came and all memory was given back.
func (f *following) end(t *testing.T) {
	t.Helper()
	f.stop()
	if err := <-f.ended; err != nil {
		t.Error(err)
	}
	if len(f.got) > 0 {
		t.Errorf("%s came, too", <-f.got)
	}
	if n := f.req.Quota.Charged().Bytes(); n != 0 {
		t.Errorf("%d bytes are still charged", n)
	}
}

// lineAt is a row with a time so long before now.
func lineAt(before time.Duration, app, text string) string {
	return fmt.Sprintf("{\"_time\":%q,\"_stream\":\"{app=\\\"%s\\\"}\",\"_msg\":%q,\"app\":%q,\"x\":\"y\"}\n", time.Now().Add(-before).UTC().Format(time.RFC3339Nano), app, text, app)
}

// TestFollow: lines that come are handed out once each, whatever their order; those that were there are not,
// nor are those of other streams. Failures of the server lose none.
func TestFollow(t *testing.T) {
	f := newFollowing(t, lineAt(time.Second, "web", "old"))
	f.set(0, lineAt(0, "web", "a"))
	f.wait(t, `a{x="y"}`)
	f.set(0, lineAt(5*time.Second, "web", "late"), lineAt(0, "other", "b"))
	f.wait(t, `late{x="y"}`)
	f.set(http.StatusServiceUnavailable)
	f.set(http.StatusServiceUnavailable, lineAt(0, "web", "meanwhile"))
	f.mu.Lock()
	looks := f.looks
	f.mu.Unlock()
	f.set(0)
	f.wait(t, `meanwhile{x="y"}`)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		f.mu.Lock()
		done := f.looks > looks+5
		f.mu.Unlock()
		if done || time.Now().After(deadline) {
			break
		}
	}
	f.end(t)
}

// TestFollowEnds: an error that does not pass ends it, and a tenant without an account gets nothing.
func TestFollowEnds(t *testing.T) {
	f := newFollowing(t)
	f.set(http.StatusBadRequest)
	if err := <-f.ended; !errors.Is(err, model.ErrInvalid) {
		t.Errorf("%v, want an invalid query", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	req := request()
	req.Tenant = "stranger"
	asked := f.asked.Load()
	if err := f.Follow(ctx, req, cancel, nil, nil); err != nil || f.asked.Load() != asked {
		t.Errorf("%v after %d requests", err, f.asked.Load()-asked)
	}
	f.stop()
}

// TestFollowMemory: what is remembered is bounded and charged.
func TestFollowMemory(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		for i := range 100 {
			io.WriteString(rw, lineAt(0, "web", fmt.Sprint(i)))
		}
	})
	req := request()
	req.Quota = &model.Quota{Pool: &model.QueryPool{MaxBytes: math.MaxInt64}, MaxBytes: 50 * followedBytes}
	if err := w.Follow(context.Background(), req, func() {}, nil, nil); !errors.Is(err, model.ErrLimit) {
		t.Errorf("%v, want a limit", err)
	}
	if n := req.Quota.Charged().Bytes(); n != 0 {
		t.Errorf("%d bytes are still charged", n)
	}
}
