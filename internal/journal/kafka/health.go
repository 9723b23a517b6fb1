package kafka

import (
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// health is what a client has seen of its brokers. It is safe for concurrent use.
type health struct {
	// answered is when a broker last answered, in Unix nanoseconds; at first, when the client was made.
	answered atomic.Int64
	// failed is the last request or connection that failed.
	failed atomic.Pointer[brokerFailure]
}

type brokerFailure struct {
	at     time.Time
	broker string
	err    error
}

var (
	_ kgo.HookBrokerConnect = (*health)(nil)
	_ kgo.HookBrokerE2E     = (*health)(nil)
)

func newHealth() *health {
	h := new(health)
	h.answered.Store(time.Now().UnixNano())
	return h
}

// OnBrokerConnect notes brokers that cannot be reached.
func (h *health) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	h.note(meta, err)
}

// OnBrokerE2E notes answers, and requests that failed on their way.
func (h *health) OnBrokerE2E(meta kgo.BrokerMetadata, _ int16, e kgo.BrokerE2E) {
	err := e.Err()
	if err == nil {
		h.answered.Store(time.Now().UnixNano())
	}
	h.note(meta, err)
}

func (h *health) note(meta kgo.BrokerMetadata, err error) {
	if err != nil {
		h.failed.Store(&brokerFailure{time.Now(), net.JoinHostPort(meta.Host, fmt.Sprint(meta.Port)), err})
	}
}

// age returns how long ago a broker answered.
func (h *health) age() time.Duration { return time.Since(time.Unix(0, h.answered.Load())) }

// cause adds to an error what last failed on the way to brokers since a time. The client's own error of a
// time-out does not say it.
func (h *health) cause(err error, since time.Time) error {
	f := h.failed.Load()
	if err == nil || f == nil || f.at.Before(since) {
		return err
	}
	return fmt.Errorf("%w (broker %s: %v)", err, f.broker, f.err)
}
