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
	// Seed is the key seed, if SeedKnown. Otherwise the bucket has none that can be read, which is a problem.
	Seed      model.KeySeed
	SeedKnown bool
	Records   []SurveyRecord // in the order in which they were committed
	Blocks    []SurveyBlock  // in the order of their first times
	// Deletions ascend. Cancelled has the generations of those that were cancelled.
	Deletions Deletions
	Cancelled map[uint64]bool
	// Journals are the journals that ships cover, by node and epoch.
	Journals []SurveyJournal
	// Orphans are objects of uploads that were not committed, Strays those of blocks whose record is lost with
	// its copies. Aside was set aside by a repair. Strangers are objects that Shale did not write.
	Orphans, Strays, Aside, Strangers []SurveyObject
	// Lost are records that are missing from the bucket, Damaged those that cannot be read.
	Lost, Damaged []SpareRecord
	// Problems are errors of the classes of package model. A catalogue with a problem is not reliable.
	Problems []error

	bucket, memory Reader
	// contents are the intact records by name, copied the names of records with a copy.
	contents map[string][]byte
	copied   map[string]bool
	// badCopies are the names of records whose copies cannot be read. seedLost says that only the copy of the
	// seed is intact.
	badCopies []string
	seedLost  bool
	// doubled are blocks with two records, one of which was rebuilt by a repair.
	doubled []doubledBlock
}

// doubledBlock is a record that a repair has rebuilt for a block, and the true one.
type doubledBlock struct{ rebuilt, record *commit }

// SurveyRecord is a commit record.
type SurveyRecord struct {
	ID                      string
	Committed               int64 // Unix nanoseconds
	Blocks, Replaces, Bytes int
	Deletes                 bool
}

// SurveyJournal is what ships say about a journal.
type SurveyJournal struct {
	// Coverage is that of the last ship, whose record is Ship.
	Coverage
	Ship    string
	Skipped []Skip
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

// ReadSurvey surveys a bucket. memory is that of a server, or nil. It fails only if the bucket cannot be
// listed; all else is in Problems. It may run next to servers: see docs/format-bucket.md for the order of
// the listings.
func ReadSurvey(ctx context.Context, b, memory Reader) (*Survey, error) {
	s := &Survey{bucket: b, memory: memory, contents: map[string][]byte{}, copied: map[string]bool{}}
	sizes := map[string]int64{}
	err := b.List(ctx, "", func(name string, size int64) error {
		switch {
		case strings.HasPrefix(name, BlockPrefix):
			sizes[strings.TrimPrefix(name, BlockPrefix)] = size
		case strings.HasPrefix(name, asidePrefix):
			s.Aside = append(s.Aside, SurveyObject{name, size})
		case name != SeedName && !strings.HasPrefix(name, RecordPrefix) && !strings.HasPrefix(name, CopyPrefix) && !strings.HasPrefix(name, FamilyPrefix) && !strings.HasPrefix(name, DecisionPrefix) &&
			!strings.HasPrefix(name, UploadPrefix) && !strings.HasPrefix(name, CollectedPrefix) && !strings.HasPrefix(name, TopicPrefix):
			s.Strangers = append(s.Strangers, SurveyObject{name, size})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("survey: %w", err)
	}
	marked := map[string]bool{}
	var names []string
	for prefix, note := range map[string]func(name string){
		UploadPrefix: func(name string) {
			id, claim := markedBlock(name)
			marked[id] = marked[id] || !claim
		},
		copyName(RecordPrefix): func(name string) { s.copied[strings.TrimPrefix(name, CopyPrefix)] = true },
	} {
		err := b.List(ctx, prefix, func(name string, _ int64) error { note(name); return nil })
		if err != nil {
			return nil, fmt.Errorf("survey: %w", err)
		}
	}
	err = b.List(ctx, RecordPrefix, func(name string, _ int64) error { names = append(names, name); return nil })
	if err != nil {
		return nil, fmt.Errorf("survey: %w", err)
	}
	slices.Sort(names)
	var records []*commit
	for _, name := range names {
		if r := s.record(ctx, name); r != nil {
			records = append(records, r)
		}
	}
	lost, err := s.findLost(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("survey: %w", err)
	}
	s.seed(ctx)
	records = append(records, lost...)
	s.journals(records)
	s.blocks(records, sizes)
	for i := range s.Blocks {
		// Its record was listed last, so it may have been committed since the objects were listed.
		if sb := &s.Blocks[i]; sb.HiddenBy == "" && sb.ObjectBytes != sb.Bytes {
			if sb.ObjectBytes, err = sizeOf(ctx, b, ObjectName(sb.ID)); err != nil {
				return nil, fmt.Errorf("survey: %w", err)
			}
		}
	}
	if err := s.findStrays(ctx, marked); err != nil {
		return nil, fmt.Errorf("survey: %w", err)
	}
	s.sort()
	s.addProblems()
	return s, nil
}

// sizeOf returns the size of an object, -1 if it is missing.
func sizeOf(ctx context.Context, b Reader, name string) (int64, error) {
	size := int64(-1)
	err := b.List(ctx, name, func(found string, n int64) error {
		if found == name {
			size = n
		}
		return nil
	})
	return size, err
}

// seed reads the seed, or adds a problem.
func (s *Survey) seed(ctx context.Context) {
	seed, err := readSeedObject(ctx, s.bucket, SeedName)
	if err != nil && (errors.Is(err, bucket.ErrNotFound) || errors.Is(err, model.ErrCorrupt)) {
		if spare, e := readSeedObject(ctx, s.bucket, copyName(SeedName)); e == nil {
			s.seedLost, s.SeedKnown, seed = true, true, spare
		}
	}
	s.SeedKnown = s.SeedKnown || err == nil
	if errors.Is(err, bucket.ErrNotFound) {
		// The seed is the first object that a server writes.
		err = fmt.Errorf("%s: %w: the object is missing: the bucket was not made by Shale, or has lost its seed", SeedName, model.ErrCorrupt)
	}
	if spare, e := readSeedObject(ctx, s.bucket, copyName(SeedName)); err == nil && e == nil && spare != seed {
		err = fmt.Errorf("%s: %w: it is %016x, and its copy %016x: one of them is of another bucket", SeedName, model.ErrCorrupt, uint64(seed), uint64(spare))
	}
	if s.Seed = seed; err != nil {
		s.Problems = append(s.Problems, err)
	}
}

// record reads one record, or adds a problem. It returns the content of an intact copy if the record is
// damaged.
func (s *Survey) record(ctx context.Context, name string) *commit {
	var r *commit
	_, err := recordOf(name)
	var data []byte
	if err == nil {
		data, err = s.bucket.Get(ctx, name)
	}
	if errors.Is(err, bucket.ErrNotFound) {
		return nil // collected since it was listed
	}
	if err == nil {
		r, err = parseRecord(name, data)
	}
	if err != nil {
		s.Problems = append(s.Problems, err)
		if errors.Is(err, model.ErrCorrupt) {
			spare := s.spare(ctx, name)
			s.Damaged = append(s.Damaged, spare)
			r = spare.commit
		}
		return r
	}
	s.contents[name] = data
	s.Records = append(s.Records, SurveyRecord{
		ID: r.id, Committed: r.committed, Blocks: len(r.blocks), Replaces: len(r.replaces), Bytes: len(data), Deletes: r.deletion != nil,
	})
	if r.deletion != nil {
		s.Deletions = append(s.Deletions, r.deletion)
	}
	if r.cancels > 0 {
		if s.Cancelled == nil {
			s.Cancelled = map[uint64]bool{}
		}
		s.Cancelled[r.cancels] = true
	}
	if s.copied[name] {
		s.checkCopy(ctx, name)
	}
	return r
}

// journals gathers what ships cover, and adds a problem for each range that two ships claim.
func (s *Survey) journals(records []*commit) {
	ships := slices.DeleteFunc(slices.Clone(records), func(r *commit) bool { return r.ship == 0 })
	slices.SortFunc(ships, func(a, b *commit) int { return cmp.Compare(a.ship, b.ship) })
	for _, r := range ships {
		for _, v := range r.covered {
			last := s.journal(v.Journal())
			if v.From <= last.To {
				s.Problems = append(s.Problems, fmt.Errorf("%w: %s and %s both cover the journal %s/%d from %d to %d",
					model.ErrCorrupt, recordName(last.Ship), recordName(r.id), v.Node, v.Epoch, v.From, last.To))
			}
			last.Coverage, last.Ship = v, r.id
		}
		for _, k := range r.skipped {
			in := s.journal(journal{Node: k.Node, Epoch: k.Epoch})
			in.Skipped = append(in.Skipped, k)
		}
	}
	slices.SortFunc(s.Journals, func(a, b SurveyJournal) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Epoch, b.Epoch))
	})
}

// journal returns the entry of a journal.
func (s *Survey) journal(j journal) *SurveyJournal {
	for i := range s.Journals {
		if s.Journals[i].Journal() == j {
			return &s.Journals[i]
		}
	}
	s.Journals = append(s.Journals, SurveyJournal{Coverage: Coverage{Node: j.Node, Epoch: j.Epoch}})
	return &s.Journals[len(s.Journals)-1]
}

func (s *Survey) blocks(records []*commit, sizes map[string]int64) {
	holder := map[string]*commit{}
	for _, r := range records {
		for _, b := range r.blocks {
			if other := holder[b.ID]; other != nil {
				s.Problems = append(s.Problems, fmt.Errorf("%w: block %s is in the records %s and %s", model.ErrCorrupt, b.ID, other.id, r.id))
				if r.rebuilt() != other.rebuilt() {
					d := doubledBlock{rebuilt: r, record: other}
					if other.rebuilt() {
						d = doubledBlock{rebuilt: other, record: r}
					}
					s.doubled = append(s.doubled, d)
				}
				continue
			}
			holder[b.ID] = r
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
		if holder[id] == nil {
			s.Orphans = append(s.Orphans, SurveyObject{ObjectName(id), size}) // or a stray, see findStrays
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
