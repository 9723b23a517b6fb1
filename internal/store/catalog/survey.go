package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// Reader is the part of a bucket that a survey needs.
type Reader interface {
	// Get returns a whole object.
	Get(ctx context.Context, name string) ([]byte, error)
	// List calls fn with every object whose name begins with prefix.
	List(ctx context.Context, prefix string, fn func(name string, size int64) error) error
}

// Survey lists everything in a bucket, for people. It does not stop at damage.
type Survey struct {
	// Seed is the key seed. It is 0 if the bucket has none, which is a problem.
	Seed    model.KeySeed
	Records []SurveyRecord // in the order in which they were committed
	Blocks  []SurveyBlock  // in the order of their first times
	// Deletions ascend.
	Deletions Deletions
	// Orphans are objects of blocks without a record, Strangers are objects that Shale did not write.
	Orphans, Strangers []SurveyObject
	// Problems are errors of the classes of package model. A catalogue with a problem is not reliable.
	Problems []error
}

// SurveyRecord is a commit record.
type SurveyRecord struct {
	ID                      string
	Committed               int64 // Unix nanoseconds
	Blocks, Replaces, Bytes int
	Deletes                 bool
}

// SurveyBlock is a block with a record.
type SurveyBlock struct {
	Block
	// HiddenBy is the record that replaces the block and makes it garbage; empty if the block is live.
	// HiddenAt is the time of that record in Unix nanoseconds.
	HiddenBy string
	HiddenAt int64
	// ObjectBytes is the size of the object, -1 if it is missing.
	ObjectBytes int64
}

// SurveyObject is an object.
type SurveyObject struct {
	Name  string
	Bytes int64
}

// ReadSurvey surveys a bucket. It fails only if the bucket cannot be listed; all else is in Problems.
func ReadSurvey(ctx context.Context, b Reader) (*Survey, error) {
	s := &Survey{}
	sizes := map[string]int64{}
	var names []string
	err := b.List(ctx, "", func(name string, size int64) error {
		switch {
		case strings.HasPrefix(name, blockPrefix):
			sizes[strings.TrimPrefix(name, blockPrefix)] = size
		case strings.HasPrefix(name, recordPrefix):
			names = append(names, name)
		case name != seedName:
			s.Strangers = append(s.Strangers, SurveyObject{name, size})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("survey: %w", err)
	}
	slices.Sort(names)
	var records []*commit
	for _, name := range names {
		if r := s.record(ctx, b, name); r != nil {
			records = append(records, r)
		}
	}
	if s.Seed, err = Seed(ctx, b); errors.Is(err, bucket.ErrNotFound) {
		// The seed is the first object that a server writes.
		err = fmt.Errorf("%s: %w: the object is missing: the bucket was not made by Shale, or has lost its seed", seedName, model.ErrCorrupt)
	}
	if err != nil {
		s.Problems = append(s.Problems, err)
	}
	s.blocks(records, sizes)
	s.sort()
	s.addProblems()
	return s, nil
}

// record reads one record, or adds a problem.
func (s *Survey) record(ctx context.Context, b Reader, name string) *commit {
	var r *commit
	_, err := recordOf(name)
	var data []byte
	if err == nil {
		data, err = b.Get(ctx, name)
	}
	if err == nil {
		r, err = parseRecord(name, data)
	}
	if err != nil {
		s.Problems = append(s.Problems, err)
		return nil
	}
	s.Records = append(s.Records, SurveyRecord{
		ID: r.id, Committed: r.committed, Blocks: len(r.blocks), Replaces: len(r.replaces), Bytes: len(data), Deletes: r.deletion != nil,
	})
	if r.deletion != nil {
		s.Deletions = append(s.Deletions, r.deletion)
	}
	return r
}

func (s *Survey) blocks(records []*commit, sizes map[string]int64) {
	holder := map[string]string{}
	for _, r := range records {
		for _, b := range r.blocks {
			if other := holder[b.ID]; other != "" {
				s.Problems = append(s.Problems, fmt.Errorf("%w: block %s is in the records %s and %s", model.ErrCorrupt, b.ID, other, r.id))
				continue
			}
			holder[b.ID] = r.id
			b.Record = r.id
			found := SurveyBlock{Block: b, ObjectBytes: -1}
			if size, ok := sizes[b.ID]; ok {
				found.ObjectBytes = size
			}
			for _, o := range records {
				if slices.Contains(o.replaces, b.ID) && (found.HiddenBy == "" || o.committed < found.HiddenAt) {
					found.HiddenBy, found.HiddenAt = o.id, o.committed
				}
			}
			s.Blocks = append(s.Blocks, found)
		}
	}
	for id, size := range sizes {
		if holder[id] == "" {
			s.Orphans = append(s.Orphans, SurveyObject{ObjectName(id), size})
		}
	}
}

func (s *Survey) sort() {
	slices.SortFunc(s.Records, func(a, b SurveyRecord) int {
		return cmp.Or(cmp.Compare(a.Committed, b.Committed), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(s.Blocks, func(a, b SurveyBlock) int { return compareBlocks(a.Block, b.Block) })
	slices.SortFunc(s.Deletions, func(a, b *Deletion) int { return cmp.Compare(a.Generation, b.Generation) })
	byName := func(a, b SurveyObject) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(s.Orphans, byName)
	slices.SortFunc(s.Strangers, byName)
}

// addProblems adds the problems of live blocks.
func (s *Survey) addProblems() {
	for i := range s.Blocks {
		b := &s.Blocks[i]
		switch {
		case b.HiddenBy != "":
		case b.ObjectBytes < 0:
			s.Problems = append(s.Problems, fmt.Errorf("%w: live block %s has no object", model.ErrCorrupt, b.ID))
		case b.ObjectBytes != b.Bytes:
			s.Problems = append(s.Problems, fmt.Errorf("%w: block %s is damaged: expected %d bytes, got %d", model.ErrCorrupt, b.ID, b.Bytes, b.ObjectBytes))
		}
	}
}
