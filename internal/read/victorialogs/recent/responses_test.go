package recent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestResponses: a response is found while it is on its way and for a while after it began, unless it is not
// whole, or too long.
func TestResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := Responses{MaxBytes: 80, For: time.Second, Elapsed: func() int64 { return time.Now().UnixNano() }}
		find := func(key, want string) {
			t.Helper()
			if text, ok := r.Find(context.Background(), key); string(text) != want || ok != (want != "") {
				t.Errorf("%s: %q, %v, want %q", key, text, ok, want)
			}
		}
		send := func(key, text string, whole bool) {
			x := r.Begin(key)
			x.Append(func(b []byte) []byte { return append(b, text...) })
			x.End(whole)
		}
		find("a", "")
		x := r.Begin("a")
		go func() {
			time.Sleep(time.Minute)
			x.Append(func(b []byte) []byte { return append(b, "x"...) })
			x.End(true)
		}()
		find("a", "x") // however long it took
		find("a", "")
		send("b", "y", true)
		send("c", "cut", false)
		send("d", "0123456789ab", true)
		find("b", "y")
		find("c", "")
		find("d", "")
		for range 100 {
			send("b", "z", true) // others of the same request take its place
		}
		find("b", "z")
		time.Sleep(time.Second + 1)
		find("b", "")
		r.Begin("e").End(true)
		if r.bytes != 0 || len(r.of) != 1 {
			t.Errorf("%d bytes and %d responses are kept", r.bytes, len(r.of))
		}
	})
}
