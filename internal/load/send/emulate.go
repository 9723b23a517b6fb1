package send

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/shaledb/shale/internal/load/random"
	"github.com/shaledb/shale/internal/load/wire"
	"github.com/shaledb/shale/internal/model"
)

// Emulation is the sender whose retries a load imitates.
type Emulation uint8

// The senders.
const (
	// Prometheus retries after a 5xx, from 30 ms to 5 s apart, and drops a batch after any other error. It
	// retries after a 429 only if told to.
	Prometheus Emulation = iota
	// VMAgent drops a batch after 400, 409 and 415, and retries after everything else, from 1 s to 1 min apart.
	// After 400 or 415 it sends a zstd body again as snappy, and all later bodies too.
	VMAgent
)

var emulationNames = [...]string{"prometheus", "vmagent"}

// String returns the name of the sender.
func (e Emulation) String() string { return emulationNames[e] }

// UnmarshalText reads the name of a sender. Its error is of class [model.ErrInvalid].
func (e *Emulation) UnmarshalText(text []byte) error {
	i := slices.Index(emulationNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("%w: sender %q: want prometheus or vmagent", model.ErrInvalid, text)
	}
	*e = Emulation(i)
	return nil
}

// fate says what a sender does after a response.
type fate uint8

const (
	stored  fate = iota
	again        // the same body, later
	repack       // the same samples, as snappy, at once
	refused      // dropped
)

// fate decides what follows a response to a body of the given compression.
func (e Emulation) fate(code int, c wire.Compression, retry429 bool) fate {
	switch {
	case code/100 == 2:
		return stored
	case e == Prometheus && (code/100 == 5 || code == http.StatusTooManyRequests && retry429):
		return again
	case e == Prometheus, code == http.StatusConflict:
		return refused
	case code == http.StatusBadRequest, code == http.StatusUnsupportedMediaType:
		if c == wire.Zstd {
			return repack
		}
		return refused
	}
	return again
}

// backoff spaces the attempts to send one body.
type backoff struct {
	Emulation
	next time.Duration
	// tries and the seed draw the jitter of each wait: at most a tenth, so that shards that were refused
	// together do not come back together.
	seed, tries uint64
}

// The default waits of the senders between attempts.
const (
	minBackoff = 30 * time.Millisecond
	maxBackoff = 5 * time.Second

	minBackoffVMAgent = time.Second
	maxBackoffVMAgent = time.Minute
)

func (b *backoff) begin() {
	b.next = minBackoff
	if b.Emulation == VMAgent {
		b.next = minBackoffVMAgent
	}
}

// wait returns how long to wait now. The Retry-After of the server, unless it is 0, replaces the sender's own
// wait.
func (b *backoff) wait(retryAfter time.Duration) time.Duration {
	wait := b.next
	if retryAfter > 0 {
		wait = retryAfter
	}
	switch {
	case b.Emulation == Prometheus:
		b.next = min(2*wait, maxBackoff)
	case retryAfter == 0:
		b.next = min(2*wait, maxBackoffVMAgent)
	}
	b.tries++
	return wait + time.Duration(random.Draw(b.seed, b.tries, 0)%uint64(wait/10+1))
}

// headers returns the header lines that describe the body of a request.
func headers(p wire.Protocol, c wire.Compression, e Emulation) string {
	h := "Content-Encoding: " + c.String() + "\r\n"
	if p == wire.V2 {
		return h + "Content-Type: application/x-protobuf;proto=io.prometheus.write.v2.Request\r\nX-Prometheus-Remote-Write-Version: 2.0.0\r\n"
	}
	h += "Content-Type: application/x-protobuf\r\n"
	if e == VMAgent && c == wire.Zstd {
		return h + "X-VictoriaMetrics-Remote-Write-Version: 1\r\n"
	}
	return h + "X-Prometheus-Remote-Write-Version: 0.1.0\r\n"
}
