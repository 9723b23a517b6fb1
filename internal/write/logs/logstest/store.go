package logstest

import (
	"context"
	"fmt"
	"sync"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/writetest"
)

// Now is the time of the tests, the beginning of March 2026.
const Now int64 = 1_772_323_200_000_000_000

// Seed is the seed of the tests' keys.
const Seed model.KeySeed = 9

// Labels returns the labels of series i of a batch. If they are not canonical, or the key does not
// match them, it returns an error of class invalid.
func Labels(b *model.Batch, i int) (model.Labels, error) {
	l := b.Labels.At(i)
	if b.Labels.Series[i] != uint32(i) || l.Check() != nil || l.Key(Seed, b.Signal) != b.Keys[i] {
		return nil, fmt.Errorf("%w: labels %s", model.ErrInvalid, l)
	}
	return l, nil
}

// Store is a head that knows no series and a journal that keeps lines. It is safe for concurrent use.
type Store struct {
	writetest.Unknown

	mu    sync.Mutex
	lines []string
	err   error
}

// Fail makes Append return err from now on; nil lets it succeed again.
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// Append keeps the lines of a batch. If the batch is not one of well-formed lines, the error is of
// class invalid.
func (s *Store) Append(_ context.Context, b *model.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if b.Signal != model.Logs || b.Samples.Len() > 0 || b.Exemplars.Len() > 0 {
		return fmt.Errorf("%w: not a batch of logs", model.ErrInvalid)
	}
	for i := range b.Keys {
		l, err := Labels(b, i)
		if err != nil {
			return err
		}
		for at := b.Text.Begin(i); at < b.Text.End(i); at++ {
			line, err := model.ParseLine(b.Text.Blob(int(at)))
			if err != nil {
				return err
			}
			s.lines = append(s.lines, fmt.Sprintf("%s %d %q %s", l, b.Text.Times[at]-Now, line.Text, line.Metadata))
		}
	}
	return nil
}

// Take returns the lines since the last call in order of arrival: labels, time relative to Now, text
// and metadata.
func (s *Store) Take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines
	s.lines = nil
	return l
}
