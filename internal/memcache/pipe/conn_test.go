package pipe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/memcache/memcachetest"
	"github.com/shaledb/shale/internal/memcache/meta"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func dial(t testing.TB, addr string, o Options) *Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if o.MaxValue == 0 {
		o.MaxValue = 1 << 20
	}
	if o.Stall == 0 {
		o.Stall = 10 * time.Second
	}
	c := New(conn, o)
	t.Cleanup(c.Close)
	return c
}

func soon() time.Time { return time.Now().Add(10 * time.Second) }

func get(key string) Call {
	return Call{Request: meta.Request{Verb: meta.Get, Key: []byte(key), Flags: meta.Flags{Letters: meta.Of("vq")}}}
}

func set(key string, value []byte) Call {
	return Call{Request: meta.Request{Verb: meta.Set, Key: []byte(key)}, Value: value}
}

func (c *Conn) must(t testing.TB, calls ...Call) []Call {
	t.Helper()
	if err := c.Do(context.Background(), soon(), calls); err != nil {
		t.Fatal(err)
	}
	return calls
}

// TestServer sends all kinds of requests to a real server.
func TestServer(t *testing.T) {
	c := dial(t, memcachetest.Start(t).Addr, Options{})
	if got := c.must(t, set("a", []byte("1")), set("b", nil)); got[0].Code != meta.HD || got[1].Code != meta.HD {
		t.Errorf("set: %+v", got)
	}
	got := c.must(t, get("a"), get("none"), get("b"))
	if string(got[0].Data) != "1" || got[1].Code != meta.EN || got[2].Code != meta.VA || len(got[2].Data) != 0 {
		t.Errorf("get: %+v", got)
	}
	vivify := get("new")
	vivify.Request.Flags.Letters |= meta.Of("N")
	vivify.Request.Flags.Vivify = 30
	first, second := c.must(t, vivify)[0], c.must(t, vivify)[0]
	if !first.Flags.Letters.Has('W') || !second.Flags.Letters.Has('Z') || second.Flags.Letters.Has('W') {
		t.Errorf("one reader is to win: %+v, %+v", first, second)
	}
	large := c.must(t, set("large", make([]byte, 2<<20)), get("a"))
	var refused *RefusedError
	if !errors.As(large[0].Err, &refused) || string(large[1].Data) != "1" || large[1].Err != nil {
		t.Errorf("a value that is too large: %v, and of the call after it %v", large[0].Err, large[1].Err)
	}
	remove := Call{Request: meta.Request{Verb: meta.Delete, Key: []byte("a"), Flags: meta.Flags{Letters: meta.Of("q")}}}
	if got := c.must(t, remove, get("a")); got[0].Err != nil || got[1].Code != meta.EN {
		t.Errorf("delete: %+v", got)
	}
	if err := c.Do(context.Background(), soon(), make([]Call, MaxCalls+1)); err == nil {
		t.Error("a batch is too long and is sent")
	}
	if err := c.Do(context.Background(), time.Now(), []Call{get("a")}); !errors.Is(err, ErrTimeout) {
		t.Errorf("no time is left: %v", err)
	}
}

// TestManyAtOnce has many goroutines share a connection, some of which give up. Each gets its own values.
func TestManyAtOnce(t *testing.T) {
	var observed atomic.Int64
	c := dial(t, memcachetest.Start(t).Addr, Options{Observe: func(time.Duration) { observed.Add(1) }, Stray: func() { t.Error("a stray response") }})
	value := func(n int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%d,", n), 1+n*7) }
	for n := range 100 {
		c.must(t, set(fmt.Sprint(n), value(n)))
	}
	var all sync.WaitGroup
	var answered, gaveUp atomic.Int64
	for w := range 16 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 5))
			for range 200 {
				calls, wanted := []Call(nil), []int(nil)
				for range 1 + r.IntN(20) {
					n := r.IntN(120)
					wanted, calls = append(wanted, n), append(calls, get(fmt.Sprint(n)))
				}
				deadline := soon()
				if r.IntN(4) == 0 {
					deadline = time.Now().Add(time.Duration(r.IntN(200)) * time.Microsecond)
				}
				err := c.Do(context.Background(), deadline, calls)
				if err != nil {
					if !errors.Is(err, ErrTimeout) {
						t.Error(err)
					}
					gaveUp.Add(1)
				}
				for i, n := range wanted {
					switch got := calls[i]; {
					case err != nil && got.Data != nil:
						t.Error("a call that was given up has a value")
					case err == nil && n < 100 && !bytes.Equal(got.Data, value(n)):
						t.Errorf("key %d: got %d wrong bytes", n, len(got.Data))
					case err == nil && n >= 100 && got.Code != meta.EN:
						t.Errorf("key %d: got %v", n, got.Code)
					}
				}
				answered.Add(1)
			}
		})
	}
	all.Wait()
	t.Logf("%d batches, %d given up, %d observed", answered.Load(), gaveUp.Load(), observed.Load())
}

// script serves one connection with what a function writes for each request of a batch.
func script(t testing.TB, o Options, serve func(w io.Writer, r *meta.Request)) *Conn {
	t.Helper()
	client, server := net.Pipe()
	var done sync.WaitGroup
	done.Go(func() {
		defer server.Close()
		line, one := []byte(nil), make([]byte, 1)
		for {
			if _, err := server.Read(one); err != nil {
				return
			}
			if line = append(line, one[0]); one[0] != '\n' {
				continue
			}
			var r meta.Request
			if err := r.Parse(bytes.TrimSuffix(line, []byte("\r\n"))); err != nil {
				t.Error(err)
				return
			}
			serve(server, &r)
			line = nil
		}
	})
	if o.MaxValue == 0 {
		o.MaxValue = 100
	}
	if o.Stall == 0 {
		o.Stall = 10 * time.Second
	}
	c := New(client, o)
	t.Cleanup(func() { c.Close(); done.Wait() })
	return c
}

// TestStrayResponses: responses that come late, twice, unasked or for another number answer no request.
func TestStrayResponses(t *testing.T) {
	var strays atomic.Int64
	c := script(t, Options{Stray: func() { strays.Add(1) }}, func(w io.Writer, r *meta.Request) {
		if r.Verb == meta.Noop {
			fmt.Fprint(w, "MN\r\n")
			return
		}
		n := r.Flags.Opaque
		fmt.Fprintf(w, "VA 3 O%d\r\nold\r\nVA 3\r\nnon\r\nVA 3 O%d\r\nnew\r\nHD\r\n", n-1, n+1)
		if n%2 == 0 {
			fmt.Fprintf(w, "VA 4 O%d\r\nmine\r\n", n)
		}
	})
	for n := 1; n <= 10; n++ {
		got := c.must(t, get("k"))[0]
		if n%2 == 1 && (got.Code != meta.EN || got.Data != nil) || n%2 == 0 && string(got.Data) != "mine" {
			t.Fatalf("call %d: %v %q", n, got.Code, got.Data)
		}
	}
	if strays.Load() != 40 {
		t.Errorf("%d stray responses, expected 40", strays.Load())
	}
}

// TestBrokenServers: a server that does not keep the protocol ends the connection, and all calls with it.
func TestBrokenServers(t *testing.T) {
	for name, text := range map[string]string{
		"garbage": "hello\r\n", "too large": "VA 101 O1\r\n", "wrong length": "VA 2 O1\r\nabc\r\n", "end": "", "floods": string(bytes.Repeat([]byte("HD\r\n"), 2000)),
	} {
		t.Run(name, func(t *testing.T) {
			c := script(t, Options{Stall: time.Second}, func(w io.Writer, r *meta.Request) {
				if fmt.Fprint(w, text); text == "" {
					w.(net.Conn).Close()
				}
			})
			if err := c.Do(context.Background(), soon(), []Call{get("k")}); !errors.Is(err, ErrClosed) {
				t.Errorf("got %v", err)
			}
			if err := c.Do(context.Background(), soon(), []Call{get("k")}); !errors.Is(err, ErrClosed) || c.Err() == nil {
				t.Errorf("a connection that has ended is used: %v", err)
			}
		})
	}
}

// TestStall: a connection on which no response comes ends, so that its requests do not wait without end, and
// what is in flight stays bounded.
func TestStall(t *testing.T) {
	c := script(t, Options{Stall: 100 * time.Millisecond}, func(io.Writer, *meta.Request) {})
	if err := c.Do(context.Background(), soon(), []Call{get("k")}); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	c = script(t, Options{}, func(io.Writer, *meta.Request) {})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range maxInFlight {
		if err := c.Do(ctx, soon(), []Call{get("k")}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if err := c.Do(ctx, soon(), []Call{get("k")}); !errors.Is(err, ErrBusy) || c.Load() != maxInFlight {
		t.Errorf("got %v with %d batches in flight", err, c.Load())
	}
}
