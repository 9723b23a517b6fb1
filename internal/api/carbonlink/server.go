package carbonlink

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
)

// Source has the points.
type Source interface {
	// Points returns the recent points of a path, with times in Unix seconds in order. A path that does not
	// exist has none.
	Points(ctx context.Context, path string) (times []int64, values []float64, err error)
	// Method returns the name of the aggregation method of a path.
	Method(path string) (string, error)
}

// Options configure a Server. Zero values mean the defaults.
type Options struct {
	Listen string
	Source Source
	// MaxConnections bounds the open connections; 1024 by default.
	MaxConnections int
	// Timeout bounds the time of one request; 2 minutes by default.
	Timeout time.Duration
	// Stall is how long a request or an answer may take without any progress; 10 seconds by default.
	Stall time.Duration
	// Quota returns what one request is charged to: its values and its answer; nil: nothing bounds all requests
	// together.
	Quota func() *model.Quota
	// Transit returns what the bytes of a request and of its answer are charged to while they are on their way;
	// nil: nothing bounds them. It is apart from Quota, so that slow clients hold no memory of queries.
	Transit func() *model.Quota
	// IdleTimeout is how long a connection may stay silent; 10 minutes by default. Graphite-web keeps
	// connections for its next request, and makes others when they are closed.
	IdleTimeout time.Duration
	Registerer  prometheus.Registerer
	Logger      *slog.Logger
}

// maxRequest bounds the bytes of a request. Carbon allows 1 GiB.
const maxRequest = 1 << 20

// Server answers requests until Close.
type Server struct {
	o       Options
	ln      net.Listener
	metrics *metrics
	ctx     context.Context
	stop    context.CancelFunc
	work    sync.WaitGroup
	close   sync.Once

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// Listen opens the socket and begins to answer.
func Listen(o Options) (*Server, error) {
	if o.MaxConnections == 0 {
		o.MaxConnections = 1024
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = 10 * time.Minute
	}
	if o.Stall == 0 {
		o.Stall = 10 * time.Second
	}
	unbounded := func() *model.Quota { return new(model.Quota) }
	if o.Quota == nil {
		o.Quota = unbounded
	}
	if o.Transit == nil {
		o.Transit = unbounded
	}
	ln, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("%w: carbonlink: %w", model.ErrInvalid, err)
	}
	s := &Server{o: o, ln: ln, metrics: newMetrics(o.Registerer), conns: map[net.Conn]struct{}{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.work.Go(s.accept)
	return s, nil
}

// Addr returns the address of the socket.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// Close ends all connections and waits until nothing uses the source.
func (s *Server) Close() error {
	var err error
	s.close.Do(func() {
		s.stop()
		err = s.ln.Close()
		s.mu.Lock()
		for nc := range s.conns {
			_ = nc.Close()
		}
		s.mu.Unlock()
		s.work.Wait()
	})
	return err
}

func (s *Server) accept() {
	for {
		nc, err := s.ln.Accept()
		switch {
		case err == nil:
			s.admit(nc)
		case s.ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return
		default:
			// The usual cause is a lack of file descriptors, which passes.
			s.o.Logger.Error("cannot accept a connection", "error", err)
			select {
			case <-time.After(time.Second):
			case <-s.ctx.Done():
			}
		}
	}
}

func (s *Server) admit(nc net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil || len(s.conns) >= s.o.MaxConnections {
		s.o.Logger.Warn("connection refused: too many are open", "peer", nc.RemoteAddr().String(), "limit", s.o.MaxConnections, "setting", "limits.connections")
		_ = nc.Close()
		return
	}
	s.conns[nc] = struct{}{}
	s.work.Go(func() {
		if err := model.Caught(func() error { return s.serve(nc) }); err != nil && s.ctx.Err() == nil {
			s.o.Logger.Warn("a connection of carbonlink is closed", "peer", nc.RemoteAddr().String(), "err", err)
		}
		_ = nc.Close()
		s.mu.Lock()
		delete(s.conns, nc)
		s.mu.Unlock()
	})
}

// serve answers the requests of a connection until its end.
func (s *Server) serve(nc net.Conn) error {
	client := &patient{Conn: nc, stall: s.o.Stall}
	r := bufio.NewReader(client)
	for {
		client.idle(s.o.IdleTimeout)
		var head [4]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return nil // the client has left, or is silent
		}
		n := binary.BigEndian.Uint32(head[:])
		if n > maxRequest {
			return fmt.Errorf("%w: a request of %d bytes: must have at most %d", model.ErrInvalid, n, maxRequest)
		}
		client.until, client.waits = time.Now().Add(s.o.Timeout), false
		if err := s.request(client, r, int(n)); err != nil {
			return err
		}
	}
}
