package graphite

import (
	"log/slog"
	"strconv"
	"sync"
	"time"
)

// maxLogged is how many bytes of a bad line are logged, as many as carbon logs.
const maxLogged = 400

// sampledLog logs at most one message of each kind per second, so that a flood of bad input does not
// flood the log.
type sampledLog struct {
	log *slog.Logger

	mu         sync.Mutex
	last       [kinds]time.Time
	suppressed [kinds]int
}

// The kinds of messages.
const (
	kindBadLine = iota
	kindRejected
	kindFailure
	kindBadFrame
	kinds
)

// allow reports whether a message of a kind may be logged now, and how many were suppressed since the
// last one.
func (s *sampledLog) allow(kind int) (suppressed int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.last[kind]) < time.Second {
		s.suppressed[kind]++
		return 0, false
	}
	suppressed = s.suppressed[kind]
	s.last[kind], s.suppressed[kind] = now, 0
	return suppressed, true
}

func (s *sampledLog) badLine(peer string, line []byte, why string) {
	if n, ok := s.allow(kindBadLine); ok {
		s.log.Warn("bad line: "+why, "peer", peer, "line", string(line[:min(len(line), maxLogged)]), "not_logged", n)
	}
}

func (s *sampledLog) badPoint(what, peer string, item []byte, why string) {
	if n, ok := s.allow(kindBadLine); ok {
		s.log.Warn("bad point in a "+what+": "+why, "peer", peer, "item", string(item[:min(len(item), maxLogged)]), "not_logged", n)
	}
}

// badFrame logs a lost frame with its first bytes.
func (s *sampledLog) badFrame(what, peer, why string, err error, begin []byte) {
	if n, ok := s.allow(kindBadFrame); ok {
		s.log.Warn(what+" lost: "+why, "peer", peer, "error", err, "begin", strconv.Quote(string(begin[:min(len(begin), 64)])), "not_logged", n)
	}
}

func (s *sampledLog) rejected(msg string, args ...any) {
	if n, ok := s.allow(kindRejected); ok {
		s.log.Warn(msg, append(args, "not_logged", n)...)
	}
}

func (s *sampledLog) failure(msg string, args ...any) {
	if n, ok := s.allow(kindFailure); ok {
		s.log.Error(msg, append(args, "not_logged", n)...)
	}
}
