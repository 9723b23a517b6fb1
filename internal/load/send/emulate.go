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

// Emulation is the sender whose ways a load has when it is refused.
type Emulation uint8

// The senders.
const (
	// Prometheus tries again after a 5xx, from 30 ms to 5 s apart, and drops what any other error answered; a
	// 429 is sent again only if that is asked for.
	Prometheus Emulation = iota
	// VMAgent drops what 400, 409 and 415 answered, and tries again after everything else, from 1 s to 1 min
	// apart. A zstd body that 400 or 415 answered is sent again as snappy, as are all that follow.
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

// fate says what a sender does about an answer.
type fate uint8

const (
	stored  fate = iota
	again        // the same body, later
	repack       // the same samples, as snappy, at once
	refused      // dropped
)

// fate decides about an answer to a body of the given compression.
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
	// tries, with the seed, draws by how much more than needed each wait is: at most a tenth, so that shards
	// that were refused together do not come back together.
	seed, tries uint64
}

// The waits between attempts are those of the senders with their defaults.
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

// wait returns how long to wait now. What the server asked for takes the place of the sender's own wait; 0 is
// nothing.
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

// headers returns the lines of a request's head that say how its body is to be read.
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
