package write

import (
	"log/slog"
	"sync"
	"time"
)

// What a refusalLog writes at most, and how many tenants and reasons it knows, each of a few hundred bytes.
const (
	refusalPeriod     = time.Minute
	refusalsPerSecond = 10
	maxRefusalKinds   = 1024
)

// refusalLog logs what senders are refused: a line for each tenant and reason in a refusalPeriod, and
// refusalsPerSecond lines for all together. What it leaves out is counted in the next line of its kind. It is
// safe for concurrent use.
type refusalLog struct {
	log *slog.Logger

	mu     sync.Mutex
	kinds  map[refusalKind]*refusalCount
	second int64 // of the last line, in Unix seconds
	lines  int   // in that second
}

type refusalKind struct{ tenant, reason string }

// refusalCount is the time of the last line of a kind, in Unix nanoseconds, and what has been left out since.
type refusalCount struct {
	logged  bool
	at      int64
	leftOut int
}

func newRefusalLog(log *slog.Logger) *refusalLog {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &refusalLog{log: log, kinds: make(map[refusalKind]*refusalCount)}
}

// allow reports whether a line of a kind may be logged now, and how many refusals were left out before it.
func (l *refusalLog) allow(kind refusalKind, now int64) (leftOut int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.kinds[kind]
	if c == nil {
		if len(l.kinds) >= maxRefusalKinds && !l.forget(now) {
			return 0, false
		}
		c = new(refusalCount)
		l.kinds[kind] = c
	}
	if second := now / int64(time.Second); second != l.second {
		l.second, l.lines = second, 0
	}
	if l.lines == refusalsPerSecond || c.logged && now-c.at < int64(refusalPeriod) {
		c.leftOut++
		return 0, false
	}
	l.lines++
	leftOut = c.leftOut
	*c = refusalCount{logged: true, at: now}
	return leftOut, true
}

// forget removes the kinds that may be logged again, and reports whether there is room.
func (l *refusalLog) forget(now int64) bool {
	for kind, c := range l.kinds {
		if now-c.at >= int64(refusalPeriod) {
			delete(l.kinds, kind)
		}
	}
	return len(l.kinds) < maxRefusalKinds
}

// LogRefusal logs rows that a sender was refused for a reason, with the text about the first of them. Without
// rows it is the request that was refused. Most refusals of a flood are only counted in the next line.
func (p *Path) LogRefusal(tenant, reason string, n Counts, first string) {
	leftOut, ok := p.refusals.allow(refusalKind{tenant, reason}, p.o.Now())
	if !ok {
		return
	}
	if first = first[:min(len(first), maxExampleBytes)]; n.Total() == 0 {
		p.refusals.log.Warn("request refused", "tenant", tenant, "reason", reason, "error", first, "not_logged", leftOut)
		return
	}
	p.refusals.log.Warn("rows refused", "tenant", tenant, "reason", reason, "rows", n.String(), "first", first, "not_logged", leftOut)
}
