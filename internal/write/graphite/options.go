package graphite

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/receive"
)

// Sink is what the listener needs of the write path.
type Sink interface {
	receive.Admission
	receive.Store
	TryAdmit(tenant string, bytes int64) (g *write.Grant, ok bool, err error)
	AdmitWait(ctx context.Context, tenant string, bytes int64) (*write.Grant, error)
	Discard(reason string, samples int)
}

var _ Sink = (*write.Path)(nil)

// Options build a Listener. Zero values give the defaults.
type Options struct {
	// Listen is the address of plaintext for both TCP and UDP, such as 127.0.0.1:2003. With port 0 both get the same free
	// port. Empty: no plaintext.
	Listen string
	// PickleListen is the address of pickles, by TCP, such as 127.0.0.1:2004. Empty: no pickles.
	PickleListen string
	Sink         Sink
	// MaxConnections bounds the TCP connections of plaintext that are open at one time, and those of pickles, 1024 each by
	// default. Further ones are accepted and closed at once.
	MaxConnections int
	// MaxLineBytes is the longest line without its newline, 16 KiB by default, which is carbon's. Longer ones are bad
	// lines.
	MaxLineBytes int
	// MaxFrameBytes is the longest pickle, 16 MiB by default; carbon's is 1 MiB. It is never more than a sixteenth of what
	// all requests together may hold. Who announces a longer one is disconnected.
	MaxFrameBytes int
	// FrameTimeout is the time that the bytes of one pickle may take, a minute by default. Who is slower is disconnected.
	FrameTimeout time.Duration
	// IdleTimeout closes a connection on which nothing comes for so long; 10 minutes by default, which carbon does not do.
	// Less than zero never does.
	IdleTimeout time.Duration
	// MaxBufferBytes bounds the read buffers of all connections beyond the 8 KiB that each has; 16 MiB by default.
	MaxBufferBytes int64
	// DrainTimeout bounds how long Close waits for rows that were received to become durable; 10 s by default.
	DrainTimeout time.Duration
	Registerer   prometheus.Registerer
	Logger       *slog.Logger
}

func (o *Options) setDefaults() {
	if o.MaxConnections == 0 {
		o.MaxConnections = 1024
	}
	if o.MaxLineBytes == 0 {
		o.MaxLineBytes = 16 << 10
	}
	if o.MaxFrameBytes == 0 {
		o.MaxFrameBytes = 16 << 20
	}
	if o.FrameTimeout == 0 {
		o.FrameTimeout = time.Minute
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = 10 * time.Minute
	}
	if o.MaxBufferBytes == 0 {
		o.MaxBufferBytes = 16 << 20
	}
	if o.DrainTimeout == 0 {
		o.DrainTimeout = 10 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}
