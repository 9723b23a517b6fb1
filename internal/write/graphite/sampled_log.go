package graphite

import (
	"log/slog"
	"strconv"
	"sync"
	"time"
)

// maxLogged is how many bytes of a bad line are shown, which is as much as carbon shows.
const maxLogged = 400

// sampledLog writes at most one line a second of each kind, so that a flood of bad input is no flood of logs.
type sampledLog struct {
	log *slog.Logger

	mu         sync.Mutex
	last       [kinds]time.Time
	suppressed [kinds]int
}

// The kinds of lines.
const (
	kindBadLine = iota
	kindLeftOut
	kindTrouble
	kindBadFrame
	kinds
)

// may reports whether a line of a kind may be written now, and how many were not since the last one.
func (s *sampledLog) may(kind int) (suppressed int, ok bool) {
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
	if n, ok := s.may(kindBadLine); ok {
		s.log.Warn("bad line: "+why, "peer", peer, "line", string(line[:min(len(line), maxLogged)]), "not_logged", n)
	}
}

func (s *sampledLog) badItem(peer string, item []byte, why string) {
	if n, ok := s.may(kindBadLine); ok {
		s.log.Warn("bad point in a pickle: "+why, "peer", peer, "item", string(item[:min(len(item), maxLogged)]), "not_logged", n)
	}
}

// badFrame shows the first bytes of what could not be taken.
func (s *sampledLog) badFrame(peer, why string, err error, begin []byte) {
	if n, ok := s.may(kindBadFrame); ok {
		s.log.Warn("a pickle is lost: "+why, "peer", peer, "error", err, "begin", strconv.Quote(string(begin[:min(len(begin), 64)])), "not_logged", n)
	}
}

func (s *sampledLog) leftOut(msg string, args ...any) {
	if n, ok := s.may(kindLeftOut); ok {
		s.log.Warn(msg, append(args, "not_logged", n)...)
	}
}

func (s *sampledLog) trouble(msg string, args ...any) {
	if n, ok := s.may(kindTrouble); ok {
		s.log.Error(msg, append(args, "not_logged", n)...)
	}
}
