package replicas

import (
	"context"
	"time"
)

// speakEvery is how often the others are told of what leaders have written: far more often than they would
// take a leader for silent.
func (s *Shared) speakEvery() time.Duration {
	return max(min(s.o.Failover/6, 5*time.Second), 100*time.Millisecond)
}

// Run tells other processes of the leaders that write here, until ctx ends. A replica may write to several
// processes, and each keeps requests of it while another one leads. So takeOver is called for a cluster whose
// new leader has requests here, also if it never writes here again.
func (s *Shared) Run(ctx context.Context, takeOver func(context.Context, *Cluster)) {
	tick := time.NewTicker(s.speakEvery())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.speak()
		case <-s.elected:
		}
		for _, c := range s.owing() {
			if ctx.Err() == nil {
				takeOver(ctx, c)
			}
		}
	}
}

// owing returns the clusters that have requests of their leader from before its election.
func (s *Shared) owing() (all []*Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.holding {
		if len(c.spares.due) > 0 {
			all = append(all, c)
		}
	}
	return all
}
