package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shaledb/shale/bench/result"
)

// responses are what clients have got.
type responses struct {
	codes  map[int]int
	broken int // without a whole response
	// wrong are the 5xx that are neither 503 nor ask the client to try again.
	wrong   int
	example string    // of a wrong response
	took    []float64 // seconds of those with 200
}

func (r *responses) add(o *responses) {
	if r.codes == nil {
		r.codes = make(map[int]int)
	}
	for code, n := range o.codes {
		r.codes[code] += n
	}
	r.broken += o.broken
	r.wrong += o.wrong
	r.took = append(r.took, o.took...)
	if r.example == "" {
		r.example = o.example
	}
}

// others lists the responses besides 200 and 503.
func (r *responses) others() string {
	var list []string
	for code, n := range r.codes {
		if code != http.StatusOK && code != http.StatusServiceUnavailable {
			list = append(list, fmt.Sprintf("%d: %d", code, n))
		}
	}
	slices.Sort(list)
	if r.broken > 0 {
		list = append(list, fmt.Sprintf("broken: %d", r.broken))
	}
	return strings.Join(list, ", ")
}

func (r *responses) quantile(q float64) string {
	if len(r.took) == 0 {
		return ""
	}
	return result.Seconds(result.Quantile(r.took, q))
}

// afterRefusal is how long a client waits after 503 or 429: less than it is told, so that the pressure stays.
const afterRefusal = 100 * time.Millisecond

// ask sends a request after the other until the context ends. Requests that are cut then do not count.
func (p *pressure) ask(ctx context.Context, client *http.Client, path func() string, pause time.Duration) *responses {
	got := &responses{codes: make(map[int]int)}
	for wait := time.Duration(0); ctx.Err() == nil; {
		if pause > 0 {
			wait += time.Duration((0.5 + rand.Float64()) * float64(pause))
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return got
		}
		wait = 0
		began := time.Now()
		code, refused, err := p.one(ctx, client, path(), got)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			got.broken++
			wait = afterRefusal
		default:
			if got.codes[code]++; code == http.StatusOK {
				got.took = append(got.took, time.Since(began).Seconds())
			} else if refused {
				wait = afterRefusal
			}
		}
	}
	return got
}

// one sends a request and reads the response.
func (p *pressure) one(ctx context.Context, client *http.Client, path string, got *responses) (code int, refused bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.srv.HTTP+path, nil)
	if err != nil {
		return 0, false, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, false, err
	}
	defer resp.Body.Close()
	code = resp.StatusCode
	if code == http.StatusOK {
		_, err = io.Copy(io.Discard, resp.Body)
		return code, false, err
	}
	text, err := io.ReadAll(resp.Body)
	if code >= 500 && (code != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "") {
		if got.wrong++; got.example == "" {
			got.example = fmt.Sprintf("%d %.300s", code, text)
		}
	}
	return code, code == http.StatusServiceUnavailable || code == http.StatusTooManyRequests, err
}

// crowd runs clients, each with its path, and returns what they got, by name of their query.
func (p *pressure) crowd(ctx context.Context, clients int, pause time.Duration, choose func(client int) shape) map[string]*responses {
	transport := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	all := make(map[string]*responses)
	var mu sync.Mutex
	var running sync.WaitGroup
	for n := range clients {
		running.Go(func() {
			s := choose(n)
			got := p.ask(ctx, client, func() string { return s.path(p.end) }, pause)
			mu.Lock()
			defer mu.Unlock()
			if all[s.name] == nil {
				all[s.name] = new(responses)
			}
			all[s.name].add(got)
		})
	}
	running.Wait()
	return all
}
