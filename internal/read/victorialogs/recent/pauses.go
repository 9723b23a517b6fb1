package recent

import (
	"sync"
	"time"
)

// maxPauses bounds the pauses. Beyond it, all are forgotten.
const maxPauses = 1000

// Pauses say what is not tried for a while. It is safe for concurrent use.
type Pauses struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// Begin begins a pause.
func (p *Pauses) Begin(name string, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil || len(p.until) >= maxPauses {
		p.until = map[string]time.Time{}
	}
	p.until[name] = time.Now().Add(d)
}

// Lasts reports whether a pause lasts.
func (p *Pauses) Lasts(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Before(p.until[name])
}
