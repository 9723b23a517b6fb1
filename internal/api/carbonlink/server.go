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
	// Quota returns what one request is charged to: its bytes, and those of its values and of its answer; nil:
	// nothing bounds all requests together.
	Quota func() *model.Quota
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
	if o.Quota == nil {
		o.Quota = func() *model.Quota { return new(model.Quota) }
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
	r := bufio.NewReader(nc)
	for {
		_ = nc.SetReadDeadline(time.Now().Add(s.o.IdleTimeout))
		var head [4]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return nil // the client has left, or is silent
		}
		n := binary.BigEndian.Uint32(head[:])
		if n > maxRequest {
			return fmt.Errorf("%w: a request of %d bytes: must have at most %d", model.ErrInvalid, n, maxRequest)
		}
		_ = nc.SetReadDeadline(time.Now().Add(s.o.Timeout))
		if err := s.request(nc, r, int(n)); err != nil {
			return err
		}
	}
}

// firstBytes is how much memory a request gets before any of it has come. It doubles from there.
const firstBytes = 4 << 10

// request reads a request of n bytes and answers it.
func (s *Server) request(nc net.Conn, r io.Reader, n int) error {
	quota := s.o.Quota()
	defer quota.Release()
	var request, answer []byte
	for len(request) < n {
		size := min(n, max(2*len(request), firstBytes))
		if err := quota.TakeBytes(int64(size - len(request))); err != nil {
			if _, err := io.CopyN(io.Discard, r, int64(n-len(request))); err != nil {
				return err
			}
			answer = s.failed(err)
			break
		}
		had := len(request)
		request = model.Sized(request, size)[:size]
		if _, err := io.ReadFull(r, request[had:]); err != nil {
			return err
		}
	}
	if answer == nil {
		answer = s.answer(request, quota)
	}
	binary.BigEndian.PutUint32(answer, uint32(len(answer)-4))
	_ = nc.SetWriteDeadline(time.Now().Add(s.o.Timeout))
	_, err := nc.Write(answer)
	return err
}
