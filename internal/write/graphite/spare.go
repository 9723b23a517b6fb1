package graphite

import "sync"

// smallSpare is the memory, in bytes, up to which any number of things that wait for their next use may wait for the
// garbage collector in a pool; of larger ones maxLarge are kept.
const (
	smallSpare = 64 << 10
	maxLarge   = 8
)

// spare keeps the memory of things for their next use.
type spare[T any, P interface {
	*T
	reset()
	memory() int
}] struct {
	// most is the memory of the largest thing that is kept; 0: any.
	most  int
	small sync.Pool
	mu    sync.Mutex
	large []P
}

// take returns a thing that is empty, rather a large one if a large one is wanted.
func (s *spare[T, P]) take(large bool) P {
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

// give takes a thing back.
func (s *spare[T, P]) give(t P) {
	t.reset()
	size := t.memory()
	if size <= smallSpare {
		s.small.Put(t)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.large) < maxLarge && (s.most == 0 || size <= s.most) {
		s.large = append(s.large, t)
	}
}
