package neighbours

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
)

// Way is a way to misbehave.
type Way struct {
	Name, What string
	// clients is how many send at one time.
	clients int
	// one sends one request and returns its status.
	one func(b *bad, ctx context.Context, client int) (int, error)
}

// badTenant is the one that misbehaves.
const badTenant = "bad"

// bad is the client of the tenant that misbehaves.
type bad struct {
	*client
	n      atomic.Int64
	bodies [][]byte
	run    uint64
}

// Ways are the eight ways.
func Ways() []Way {
	return []Way{
		{"rate", "8 clients send requests of 5,000 samples of known series without a pause", 8, (*bad).rate},
		{"series", "8 clients create 1,000 series with each request without a pause", 8, (*bad).series},
		{"labels", "8 clients send series with 64 labels of 4 KB, the most that is allowed", 8, (*bad).labels},
		{"bodies", "8 clients send bodies of 31 MiB", 8, (*bad).huge},
		{"slow bodies", "900 connections send a byte a second", 900, (*bad).slow},
		{"wide query", "4 clients read all series over all of their time", 4, (*bad).wide},
		{"query flood", "1,000 clients send queries without a pause", 1000, (*bad).many},
		{"tenant names", "16 clients write, each request as another one of 100,000 tenants", 16, (*bad).names},
	}
}

// Prepare writes the series that the tenant's queries read: 1,000 with 300 samples.
func Prepare(ctx context.Context, url string) error {
	c := newClient(url, 1)
	begin := time.Now().Add(-300 * 15 * time.Second)
	for i := range 300 {
		for {
			status, text, err := c.write(ctx, badTenant, body("held", 1000, begin.Add(time.Duration(i)*15*time.Second), numbered))
			if err == nil && status == http.StatusNoContent {
				break
			}
			if status != http.StatusTooManyRequests {
				return fmt.Errorf("%d %.200s %w", status, text, err)
			}
			if err := wait(ctx, time.Second); err != nil {
				return err
			}
		}
	}
	return nil
}

// Misbehave misbehaves until the context ends, and returns how often it got which status; 0: no response.
func (w *Way) Misbehave(ctx context.Context, url string) map[int]int {
	b := &bad{client: newClient(url, w.clients), run: rand.Uint64()}
	if w.Name == "rate" {
		for i := range 30 {
			b.bodies = append(b.bodies, body("rate", 5000, time.Now().Add(time.Duration(i-30)*time.Second), numbered))
		}
	}
	if w.Name == "bodies" {
		raw := bytes.Repeat(randomBytes(1<<20), 31)
		b.bodies = [][]byte{snappy.Encode(nil, raw)[:31<<20]}
	}
	var mu sync.Mutex
	got := map[int]int{}
	var done sync.WaitGroup
	for client := range w.clients {
		done.Go(func() {
			for ctx.Err() == nil {
				status, err := w.one(b, ctx, client)
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					status = 0
				}
				mu.Lock()
				got[status]++
				mu.Unlock()
				if status == 0 || status >= 300 { // it comes back as soon as a polite client might
					select {
					case <-ctx.Done():
					case <-time.After(time.Second):
					}
				}
			}
		})
	}
	done.Wait()
	return got
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

func (b *bad) rate(ctx context.Context, _ int) (int, error) {
	status, _, err := b.write(ctx, badTenant, b.bodies[int(b.n.Add(1))%len(b.bodies)])
	return status, err
}

func (b *bad) series(ctx context.Context, _ int) (int, error) {
	n := b.n.Add(1)
	status, _, err := b.write(ctx, badTenant, body("flood", 1000, time.Now(), func(i int) []prompb.Label {
		return []prompb.Label{{Name: "i", Value: fmt.Sprint(i)}, {Name: "n", Value: fmt.Sprint(b.run, n)}}
	}))
	return status, err
}

func (b *bad) labels(ctx context.Context, _ int) (int, error) {
	n := b.n.Add(1)
	status, _, err := b.write(ctx, badTenant, body("labels", 20, time.Now(), func(i int) []prompb.Label {
		list := make([]prompb.Label, 63)
		for k := range list {
			list[k] = prompb.Label{Name: fmt.Sprintf("l%02d", k), Value: fmt.Sprint(b.run, n, i, k) + strings.Repeat("v", 4000)}
		}
		return list
	}))
	return status, err
}

func (b *bad) huge(ctx context.Context, _ int) (int, error) {
	status, _, err := b.write(ctx, badTenant, b.bodies[0])
	return status, err
}

// slow sends the head of a request and then a byte a second.
func (b *bad) slow(ctx context.Context, _ int) (int, error) {
	nc, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	ended := make(chan error, 1)
	status := 0
	go func() {
		_, err := fmt.Fscanf(nc, "HTTP/1.1 %d", &status)
		ended <- err
	}()
	_, err = fmt.Fprintf(nc, "POST /api/v1/write HTTP/1.1\r\nHost: x\r\nX-Scope-OrgID: %s\r\nContent-Type: application/x-protobuf\r\nContent-Encoding: snappy\r\nContent-Length: 1000000\r\n\r\n", badTenant)
	for tick := time.NewTicker(time.Second); err == nil; {
		select {
		case err = <-ended:
			tick.Stop()
			return status, err
		case <-ctx.Done():
			err = ctx.Err()
		case <-tick.C:
			_, err = io.WriteString(nc, "x")
		}
	}
	_ = nc.Close()
	if <-ended == nil {
		return status, nil
	}
	return 0, err
}

func (b *bad) wide(ctx context.Context, _ int) (int, error) {
	status, _, err := b.query(ctx, badTenant, `count by (i) (rate({__name__=~".+"}[5m]))`, 80*time.Minute, "5")
	return status, err
}

func (b *bad) many(ctx context.Context, client int) (int, error) {
	status, _, err := b.query(ctx, badTenant, fmt.Sprintf("sum(rate(held[5m])) + %d", client), time.Hour, "15")
	return status, err
}

func (b *bad) names(ctx context.Context, _ int) (int, error) {
	n := b.n.Add(1) % 100_000
	status, _, err := b.write(ctx, fmt.Sprintf("name-%d", n), body("named", 1, time.Now(), numbered))
	return status, err
}
