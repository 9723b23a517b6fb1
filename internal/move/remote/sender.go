package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/model"
)

// The pauses between attempts of a request that the server did not name.
const (
	firstPause = 200 * time.Millisecond
	maxPause   = 10 * time.Second
)

// Sender sends requests until they are acknowledged. Several goroutines use it.
type Sender struct {
	Server *client.Server
	// patience bounds how long nothing may be acknowledged.
	patience time.Duration
	last     atomic.Int64 // when anything was acknowledged last, in Unix nanoseconds

	// Requests and Bytes were sent, Retries among them.
	Requests, Retries, Bytes atomic.Int64
}

// NewSender returns a sender that gives up when the server has acknowledged nothing for so long.
func NewSender(s *client.Server, patience time.Duration) *Sender {
	sender := &Sender{Server: s, patience: patience}
	sender.last.Store(time.Now().UnixNano())
	return sender
}

// Send sends a request until the server has acknowledged all of it. It waits as long as the server asks for.
// An error of class invalid is a refusal of some or all samples.
func (s *Sender) Send(ctx context.Context, r *Request) error {
	pause := firstPause
	for {
		s.Requests.Add(1)
		s.Bytes.Add(int64(len(r.Body)))
		got, err := s.Server.RemoteWrite(ctx, r.Body)
		switch {
		case err == nil && got.Samples == r.Floats && got.Histograms == r.Histograms:
			s.last.Store(time.Now().UnixNano())
			return nil
		case err == nil:
			return fmt.Errorf("%w: the server wrote %d of %d samples and %d of %d histograms, and gave no error", model.ErrInvalid, got.Samples, r.Floats, got.Histograms, r.Histograms)
		case !retryable(err):
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if idle := time.Since(time.Unix(0, s.last.Load())); idle > s.patience {
			return fmt.Errorf("the server has acknowledged nothing for %s (--patience): %w", idle.Round(time.Second), err)
		}
		wait := pause/2 + rand.N(pause/2)
		pause = min(2*pause, maxPause)
		var status *client.StatusError
		if errors.As(err, &status) {
			wait = max(wait, status.RetryAfter)
		}
		s.Retries.Add(1)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// retryable reports whether a later attempt may succeed. As in Prometheus, that is so for all 5xx.
func retryable(err error) bool {
	var status *client.StatusError
	if errors.As(err, &status) {
		return status.Status/100 == 5 || status.Status == http.StatusTooManyRequests
	}
	return errors.Is(err, model.ErrTransient)
}
