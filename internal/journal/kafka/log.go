package kafka

import (
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// clientLog takes what a client reports to a log: it repeats requests by itself, and says nothing else of
// brokers that do not answer.
type clientLog struct {
	log *slog.Logger

	mu sync.Mutex
	// said is when each message was logged last.
	said map[string]time.Time
}

// sayEvery is the least time between log lines with the same message.
const sayEvery = 30 * time.Second

// Level is [kgo.Logger.Level]. A client has much to say of what is as it should be.
func (l *clientLog) Level() kgo.LogLevel { return kgo.LogLevelWarn }

// Log is [kgo.Logger.Log].
func (l *clientLog) Log(_ kgo.LogLevel, msg string, about ...any) {
	l.mu.Lock()
	now := time.Now()
	say := now.Sub(l.said[msg]) >= sayEvery
	if say {
		l.said[msg] = now
	}
	l.mu.Unlock()
	if say {
		l.log.Warn("client of Kafka: "+msg, about...)
	}
}
