package pipe

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/memcache/meta"
)

// MaxCalls bounds the calls of a batch.
const MaxCalls = 256

var (
	// ErrTimeout: the response did not come in time. The request may have been carried out.
	ErrTimeout = errors.New("memcached did not respond in time")
	// ErrBusy: too much is in flight on the connection. Nothing was sent.
	ErrBusy = errors.New("too many requests are in flight to memcached")
	// ErrClosed: the connection has ended.
	ErrClosed = errors.New("the connection to memcached has ended")
)

// RefusedError is the text with which the server refused one request. The connection goes on.
type RefusedError struct{ Text string }

func (e *RefusedError) Error() string { return "memcached refused the request: " + e.Text }

// Call is a request and what became of it.
type Call struct {
	Request meta.Request
	// Value is sent with a Set.
	Value []byte

	// Code, Flags and Data are the response. A quiet Get that finds nothing has EN. Data is the caller's.
	Code  meta.Code
	Flags meta.Flags
	Data  []byte
	// Err is of this call alone: the server refused it, or it was not sent.
	Err error
}

// reset clears the response.
func (c *Call) reset() { c.Code, c.Flags, c.Data, c.Err = 0, meta.Flags{}, nil, nil }

// batch is a number of calls in flight. It belongs to the connection until its mn is there, even if the
// caller has given up.
type batch struct {
	first uint64 // number of its first call
	count int
	begun time.Time
	calls []Call // nil: the caller has given up
	err   error
	done  chan struct{} // gets one value when err or the calls are complete
	timer *time.Timer
}

var batches = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &batch{done: make(chan struct{}, 1), timer: t}
}}

// answer stores the response to a call of the batch.
func (b *batch) answer(resp *meta.Response, data []byte) {
	c := &b.calls[resp.Flags.Opaque-b.first]
	c.Code, c.Flags, c.Data, c.Err = resp.Code, resp.Flags, data, nil
	c.Flags.Key = nil // it lies in the buffer of the reader
}

// refuse stores an error that does not say which request it is about. If there are several, all that have no
// response may be the one.
func (b *batch) refuse(resp *meta.Response) {
	err := &RefusedError{fmt.Sprintf("%v %s", resp.Code, resp.Text[:min(len(resp.Text), 200)])}
	for i := range b.calls {
		if c := &b.calls[i]; c.Code == 0 && c.Err == nil {
			c.Err = err
		}
	}
}

// finish gives the calls that have no response the one that the server leaves out.
func (b *batch) finish() {
	for i := range b.calls {
		c := &b.calls[i]
		if c.Code != 0 || c.Err != nil {
			continue
		}
		if c.Code = meta.HD; c.Request.Verb == meta.Get {
			c.Code = meta.EN
		} else if !c.Request.Flags.Letters.Has('q') {
			c.Err = ErrTimeout // the response is lost
		}
	}
}
