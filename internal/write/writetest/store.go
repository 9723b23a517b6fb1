package writetest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/shaledb/shale/internal/model"
)

// Store is a head and a journal that keep metrics in memory. It is safe for concurrent use; lock it to
// use its fields while pushes run.
type Store struct {
	sync.Mutex
	// Rows and Exemplars have a key such as `anonymous{__name__="m"}`: the tenant and the labels.
	Rows, Exemplars map[string]*model.Rows
	// Metadata has a key such as "anonymous m": the tenant and the family.
	Metadata map[string]model.Metadata
	// Appends, Samples and Puts count the batches, the rows in Rows, and the calls of PutMetadata.
	Appends, Samples, Puts int
	// Err is what Append returns, if set.
	Err error
	// ForgedKeys makes Append accept keys that are not made of the labels. Set it before the first push.
	ForgedKeys bool
	// Gate, if not nil, is received from before each append. Set it before the first push.
	Gate chan struct{}

	seed   model.KeySeed
	labels map[model.Key]model.Labels
}

// NewStore returns an empty store. The seed is that of the write path.
func NewStore(seed model.KeySeed) *Store {
	return &Store{
		Rows: map[string]*model.Rows{}, Exemplars: map[string]*model.Rows{}, Metadata: map[string]model.Metadata{},
		seed: seed, labels: map[model.Key]model.Labels{},
	}
}

// Resolve asks for the labels that no batch has had yet.
func (s *Store) Resolve(b *model.Batch, dst []uint32) ([]uint32, error) {
	s.Lock()
	defer s.Unlock()
	for i, k := range b.Keys {
		if _, ok := s.labels[k]; !ok {
			dst = append(dst, uint32(i))
		}
	}
	return dst, nil
}

// Append keeps the samples and the exemplars of a batch. Every series must have labels, in this batch or
// in one before.
func (s *Store) Append(ctx context.Context, b *model.Batch) error {
	if s.Gate != nil {
		select {
		case <-s.Gate:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", model.ErrTransient, ctx.Err())
		}
	}
	s.Lock()
	defer s.Unlock()
	if s.Err != nil {
		return s.Err
	}
	s.Appends++
	for i := range b.Labels.Len() {
		l, k := b.Labels.At(i), b.Keys[b.Labels.Series[i]]
		if err := l.Check(); err != nil {
			return err
		}
		if want := l.Key(s.seed, b.Signal); k != want && !s.ForgedKeys {
			return fmt.Errorf("labels %s have key %s, want %s", l, k, want)
		}
		s.labels[k] = slices.Clone(l)
	}
	for i, k := range b.Keys {
		l, ok := s.labels[k]
		if !ok {
			return fmt.Errorf("key %s of tenant %s has no labels", k, b.Tenant)
		}
		id := b.Tenant + l.String()
		s.Samples += keep(s.Rows, id, &b.Samples, i)
		keep(s.Exemplars, id, &b.Exemplars, i)
	}
	return nil
}

// keep appends the rows of series i of a batch, and returns how many there are.
func keep(rows map[string]*model.Rows, id string, c *model.Columns, i int) int {
	begin, end := int(c.Begin(i)), int(c.End(i))
	if begin == end {
		return 0
	}
	if rows[id] == nil {
		rows[id] = &model.Rows{}
	}
	rows[id].AppendRows(&c.Rows, begin, end)
	return end - begin
}

// PutMetadata keeps the metadata of a family.
func (s *Store) PutMetadata(tenant, family string, m model.Metadata) error {
	s.Lock()
	defer s.Unlock()
	s.Puts++
	s.Metadata[tenant+" "+family] = m
	return nil
}
