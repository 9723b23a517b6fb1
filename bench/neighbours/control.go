package neighbours

import (
	"context"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Alone misbehaves, until the context ends, towards a server in this process that computes nothing. It
// answers as another one has: as often, and with the same statuses, as far as the clients let it. So what
// this does to others is what the clients of the tenant do, which share the machine with the server.
func (w *Way) Alone(ctx context.Context, got map[int]int, phase time.Duration) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: w.like(got, phase), ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(l) }() // ends with Close
	w.Misbehave(ctx, "http://"+l.Addr().String())
	return srv.Close()
}

// resultBytes is about the size of a result of the queries.
const resultBytes = 8 << 10

// like returns a handler whose responses come as those did that were got in a phase.
func (w *Way) like(got map[int]int, phase time.Duration) http.Handler {
	all, refused := 0, 0
	for status, n := range got {
		if all += n; status >= 300 {
			refused += n
		}
	}
	statuses := slices.Sorted(maps.Keys(got))
	// A client sends again when it has its response, and one that was refused a second later.
	took := (time.Duration(w.clients)*phase - time.Duration(refused)*time.Second) / time.Duration(max(all, 1))
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		status, n := http.StatusTooManyRequests, rand.IntN(max(all, 1))
		for _, s := range statuses {
			if n -= got[s]; n < 0 {
				status = max(s, http.StatusOK)
				break
			}
		}
		if status < 300 {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		time.Sleep(took)
		rw.WriteHeader(status)
		if status == http.StatusOK {
			_, _ = io.WriteString(rw, strings.Repeat("x", resultBytes))
		}
	})
}
