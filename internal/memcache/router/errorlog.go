package router

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

// Event is a line of the error log: what happened to a connection to a server, or to a request.
type Event struct {
	Pool, Backend string
	// Class is refused, reset, timeout, too_large, protocol, eof, closing or other.
	Class string
	Errno int
	Text  string
	// Sent and Received are the bytes of the connection. Failed is the number of requests that failed with it.
	Sent, Received int64
	Failed         int
	// Size is of the value of a request that was refused, from a Client.
	Size   int
	Client string
}

// maxLines bounds the lines of one class of one server in a second.
const maxLines = 20

// ErrorLog writes events as JSON, one a line. It is safe for concurrent use.
type ErrorLog struct {
	l *slog.Logger

	mu     sync.Mutex
	second int64
	lines  map[string]int // of this second, by backend and class
	left   map[string]int // that were left out since the last line
}

// NewErrorLog returns a log.
func NewErrorLog(w io.Writer) *ErrorLog {
	return &ErrorLog{l: slog.New(slog.NewJSONHandler(w, nil)), lines: map[string]int{}, left: map[string]int{}}
}

// write writes an event, with what the first request of it was.
func (l *ErrorLog) write(e Event, r *request) {
	key := e.Pool + " " + e.Backend + " " + e.Class
	l.mu.Lock()
	if now := time.Now().Unix(); now != l.second {
		l.second = now
		clear(l.lines)
	}
	if l.lines[key]++; l.lines[key] > maxLines {
		l.left[key]++
		l.mu.Unlock()
		return
	}
	left := l.left[key]
	delete(l.left, key)
	l.mu.Unlock()
	attributes := []slog.Attr{slog.String("pool", e.Pool), slog.String("backend", e.Backend), slog.String("class", e.Class), slog.Int("errno", e.Errno)}
	if r != nil {
		attributes = append(attributes, slog.String("op", opNames[r.op]), slog.String("key_prefix", prefix(r.key)))
	}
	attributes = append(attributes, slog.Int64("bytes_sent", e.Sent), slog.Int64("bytes_received", e.Received), slog.Int("requests_failed", e.Failed))
	if e.Size > 0 {
		attributes = append(attributes, slog.Int("value_bytes", e.Size), slog.String("client", e.Client))
	}
	if left > 0 {
		attributes = append(attributes, slog.Int("lines_left_out", left))
	}
	l.l.LogAttrs(context.Background(), slog.LevelError, e.Text, attributes...)
}

// prefix is the beginning of a key, up to what usually separates its parts, so that the log tells the kind of
// an item and not whose it is.
func prefix(key []byte) string {
	for i, c := range key[:min(len(key), 32)] {
		if i > 0 && (c == ':' || c == '.' || c == '/' || c == '|' || c == '_' || c == '-') {
			return string(key[:i+1])
		}
	}
	return string(key[:min(len(key), 8)])
}
