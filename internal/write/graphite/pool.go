package graphite

import "sync"

// Objects of at most maxSmall bytes go to a sync.Pool, which the garbage collector empties. Of larger
// objects at most maxLarge are kept.
const (
	maxSmall = 64 << 10
	maxLarge = 8
)

// pool keeps the memory of objects for their next use.
type pool[T any, P interface {
	*T
	reset()
	memory() int
}] struct {
	// most is the size of the largest object that is kept; 0 means no limit.
	most  int
	small sync.Pool
	mu    sync.Mutex
	large []P
}

// get returns an empty object. It prefers one with much memory if large is set.
func (s *pool[T, P]) get(large bool) P {
	if large {
		s.mu.Lock()
		if n := len(s.large); n > 0 {
			t := s.large[n-1]
			s.large = s.large[:n-1]
			s.mu.Unlock()
			return t
		}
		s.mu.Unlock()
	}
	if t, ok := s.small.Get().(P); ok {
		return t
	}
	return P(new(T))
}

// put returns an object for its next use.
func (s *pool[T, P]) put(t P) {
	t.reset()
	size := t.memory()
	if size <= maxSmall {
		s.small.Put(t)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.large) < maxLarge && (s.most == 0 || size <= s.most) {
		s.large = append(s.large, t)
	}
}
