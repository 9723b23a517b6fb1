package recent

import (
	"context"
	"sync"
	"time"
)

// Responses are those to requests that may be sent again at once, and need no other response then. It is safe
// for concurrent use.
type Responses struct {
	// MaxBytes bounds those that are kept, and one is at most an eighth of it.
	MaxBytes int
	// For is how long a response is kept after the request began.
	For time.Duration
	// Elapsed returns the time since some beginning, in nanoseconds.
	Elapsed func() int64

	mu    sync.Mutex
	of    map[string]*Response
	bytes int
}

// Response is one that is on its way, or has come.
type Response struct {
	of    *Responses
	key   string
	began int64
	ended chan struct{}
	// These are set when ended is closed.
	text  []byte
	whole bool
}

// Begin says that a request is sent. Its Response must be ended.
func (r *Responses) Begin(key string) *Response {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := &Response{of: r, key: key, began: r.Elapsed(), ended: make(chan struct{}), whole: true}
	r.dropLocked(x.began)
	if r.of == nil {
		r.of = map[string]*Response{}
	}
	if old := r.of[key]; old != nil && old.isEnded() {
		r.bytes -= cap(old.text)
	}
	r.of[key] = x
	return x
}

// dropLocked drops what is too old.
func (r *Responses) dropLocked(now int64) {
	for key, x := range r.of {
		if now-x.began > int64(r.For) && x.isEnded() {
			r.bytes -= cap(x.text)
			delete(r.of, key)
		}
	}
}

func (x *Response) isEnded() bool {
	select {
	case <-x.ended:
		return true
	default:
		return false
	}
}

// Append has add append to the response, unless that is too long already.
func (x *Response) Append(add func([]byte) []byte) {
	if !x.whole {
		return
	}
	if x.text = add(x.text); cap(x.text) > x.of.MaxBytes/8 {
		x.text, x.whole = nil, false
	}
}

// End says that the response has come, and whether all of it has.
func (x *Response) End(whole bool) {
	r := x.of
	r.mu.Lock()
	defer r.mu.Unlock()
	if x.whole = x.whole && whole && r.bytes+cap(x.text) <= r.MaxBytes; !x.whole {
		x.text = nil
	}
	if r.of[x.key] == x {
		r.bytes += cap(x.text)
	}
	close(x.ended)
}

// Find returns the response to a request that was sent lately. It waits for one that is on its way.
func (r *Responses) Find(ctx context.Context, key string) (text []byte, ok bool) {
	r.mu.Lock()
	r.dropLocked(r.Elapsed())
	x := r.of[key]
	r.mu.Unlock()
	if x == nil {
		return nil, false
	}
	select {
	case <-x.ended:
		return x.text, x.whole
	case <-ctx.Done():
		return nil, false
	}
}
