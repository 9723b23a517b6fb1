package main

import (
	"cmp"
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
	"github.com/shaledb/shale/bench/system"
	"github.com/shaledb/shale/internal/load/pace"
)

// responses are what clients have got.
type responses struct {
	codes map[int]int
	cut   int   // without a whole response
	cause error // of the first of those
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
	r.cut += o.cut
	r.wrong += o.wrong
	r.took = append(r.took, o.took...)
	r.example = cmp.Or(r.example, o.example)
	r.cause = cmp.Or(r.cause, o.cause)
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
	return strings.Join(list, ", ")
}

// err returns an error for responses that no client may get.
func (r *responses) err() error {
	switch {
	case r.wrong > 0:
		return fmt.Errorf("%d responses were 5xx but not 503 with Retry-After, such as %s", r.wrong, r.example)
	case r.cut > 0:
		return fmt.Errorf("%d responses were cut: %w", r.cut, r.cause)
	}
	return nil
}

func (r *responses) quantile(q float64) string {
	if len(r.took) == 0 {
		return ""
	}
	return result.Seconds(result.Quantile(r.took, q))
}

// afterRefusal is how long a client waits after 503 or 429: less than it is told, so that the pressure stays.
const afterRefusal = 100 * time.Millisecond

// lastResponses is the time that clients wait for responses to their last requests: a query waits for memory
// for a minute by default, and runs for two at most.
const lastResponses = 3 * time.Minute

// ask sends a request after the other until the context asking ends. The last one may run until ctx ends.
func (p *pressure) ask(ctx, asking context.Context, client *http.Client, path func() string, pause time.Duration) *responses {
	got := &responses{codes: make(map[int]int)}
	for wait := time.Duration(0); asking.Err() == nil; {
		if pause > 0 {
			wait += time.Duration((0.5 + rand.Float64()) * float64(pause))
		}
		select {
		case <-time.After(wait):
		case <-asking.Done():
			return got
		}
		wait = 0
		began := time.Now()
		code, refused, err := p.one(ctx, client, path(), got)
		if err != nil {
			got.cut++
			got.cause = cmp.Or(got.cause, err)
			wait = afterRefusal
			continue
		}
		if got.codes[code]++; code == http.StatusOK {
			got.took = append(got.took, time.Since(began).Seconds())
		} else if refused {
			wait = afterRefusal
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
	req.Header.Set("Cache-Control", "no-cache") // a kept response would say nothing of the query
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

// crowd runs clients that send requests for a time, each with its path, and returns what they got, by name of
// their query. It returns after all responses.
func (p *pressure) crowd(ctx context.Context, atMost time.Duration, clients int, pause time.Duration, choose func(client int) shape) map[string]*responses {
	asking, stop := context.WithTimeout(ctx, atMost)
	defer stop()
	ctx, cut := context.WithTimeoutCause(ctx, atMost+lastResponses, fmt.Errorf("no response within %s", lastResponses))
	defer cut()
	transport := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	all := make(map[string]*responses)
	var mu sync.Mutex
	var running sync.WaitGroup
	for n := range clients {
		running.Go(func() {
			s := choose(n)
			got := p.ask(ctx, asking, client, func() string { return s.path(p.end) }, pause)
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

const (
	queryBytesMetric = "shale_api_prom_query_bytes" // of the queries of all APIs
	// idlePatience is the time that queries have to give back their memory after their responses.
	idlePatience = 30 * time.Second
)

// idle waits until no query holds memory of the server.
func (p *pressure) idle(ctx context.Context) error {
	if p.sys.Kind != system.Shale {
		return nil
	}
	return awaitZero(ctx, func() (float64, error) { return p.srv.Metric(ctx, queryBytesMetric, "") })
}

// awaitZero waits until queries hold no bytes.
func awaitZero(ctx context.Context, bytes func() (float64, error)) error {
	for began := time.Now(); ; {
		held, err := bytes()
		if err != nil || held == 0 {
			return err
		}
		if time.Since(began) > idlePatience {
			return fmt.Errorf("%s is %.0f after %s without queries, want 0", queryBytesMetric, held, idlePatience)
		}
		if err := pace.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}
