package conns

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// errGaveWay is the error of a connection that was closed for another one.
var errGaveWay = errors.New("the connection was closed for another one")

// serverLog takes what a server of net/http logs. Of TLS handshakes that failed it logs one a second: anyone
// may let them fail. It leaves out those of connections that were closed for others, which are counted.
type serverLog struct {
	log *slog.Logger

	mu         sync.Mutex
	last       time.Time // of the last handshake that was logged
	suppressed int       // since then
}

// Write logs one message.
func (s *serverLog) Write(p []byte) (int, error) {
	text := strings.TrimSuffix(string(p), "\n")
	if !strings.HasPrefix(text, "http: TLS handshake error ") {
		s.log.Warn(text)
	} else if !strings.HasSuffix(text, errGaveWay.Error()) {
		if n, ok := s.allow(time.Now()); ok {
			s.log.Warn(text, "not_logged", n)
		}
	}
	return len(p), nil
}

// allow reports whether a handshake may be logged, and how many were not since the last one.
func (s *serverLog) allow(now time.Time) (suppressed int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.last) < time.Second {
		s.suppressed++
		return 0, false
	}
	suppressed = s.suppressed
	s.last, s.suppressed = now, 0
	return suppressed, true
}
