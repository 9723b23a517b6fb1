package graphite

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/receive"
)

// Sink is the write path as the listener sees it.
type Sink interface {
	receive.Admission
	receive.Store
	TryAdmit(tenant string, bytes int64) (g *write.Grant, ok bool, err error)
	AdmitWait(ctx context.Context, tenant string, bytes int64) (*write.Grant, error)
	Discard(tenant, reason string, samples int)
	LogRefusal(tenant, reason string, n write.Counts, first string)
}

var _ Sink = (*write.Path)(nil)

// Rules say what becomes of each point, by its path as it was received.
type Rules interface {
	// Pass returns the path to store a point under. If the point is not to be stored, dropped is the
	// reason why it is discarded. The path is valid UTF-8, and Pass does not keep it. The time is in Unix
	// nanoseconds. It is called once for each point.
	Pass(tenant string, path []byte, t int64, value float64) (stored []byte, dropped string)
	// Sync makes durable what rules have kept of points that were passed. It is called before these are
	// stored.
	Sync() error
}

// maxLineBytes is the length of the longest line, as in carbon.
const maxLineBytes = 16 << 10

// Options configure a Listener. Zero values mean the defaults.
type Options struct {
	// Listen is the plaintext address for both TCP and UDP, such as 127.0.0.1:2003. With port 0 both
	// get the same free port. Empty disables plaintext.
	Listen string
	// PickleListen is the TCP address for pickles, such as 127.0.0.1:2004. Empty disables pickles.
	PickleListen string
	// ProtobufListen is the TCP address for messages of protobuf. Empty disables them.
	ProtobufListen string
	// Doors are further listeners, which speak TLS.
	Doors Doors
	// ProxyProtocol takes the address of a sender from the header that a proxy such as HAProxy sends first,
	// in version 1 or 2 of its PROXY protocol. Connections without it are closed.
	ProxyProtocol bool
	Sink          Sink
	// Rules apply to all points; nil: there are none.
	Rules Rules
	// MaxConnections bounds the open TCP connections of each address; 1024 by default. A further one takes the
	// place of one of the host with the most, or is closed as soon as it is accepted. Over TLS that is after the
	// handshake, and a sixteenth more, and four, may be in theirs.
	MaxConnections int
	// MaxLineBytes is the length of the longest line without its newline; 16 KiB by default, as in
	// carbon. Longer lines are counted as bad.
	MaxLineBytes int
	// MaxFrameBytes is the length of the longest pickle; 16 MiB by default, where carbon allows 1 MiB.
	// A sixteenth of the byte budget is a further limit. A sender that announces more is disconnected.
	MaxFrameBytes int
	// FrameTimeout is how long one pickle may take to arrive; a minute by default. A slower sender is
	// disconnected.
	FrameTimeout time.Duration
	// IdleTimeout is how long a connection may stay silent before it is closed; 10 minutes by default.
	// A negative value disables it. Carbon has no such timeout.
	IdleTimeout time.Duration
	// MaxBufferBytes bounds the read buffers of all connections together, without the first 8 KiB of
	// each; 16 MiB by default.
	MaxBufferBytes int64
	// DrainTimeout bounds how long Close waits for received rows to become durable; 10 s by default.
	DrainTimeout time.Duration
	Registerer   prometheus.Registerer
	Logger       *slog.Logger
}

func (o *Options) setDefaults() {
	if o.MaxConnections == 0 {
		o.MaxConnections = 1024
	}
	if o.MaxLineBytes == 0 {
		o.MaxLineBytes = maxLineBytes
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
