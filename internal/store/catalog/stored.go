package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog/entry"
)

// Stored is a commit record as it is stored, for programs that move records without changing them.
type Stored struct {
	ID   string
	Data []byte
	// Committed is the time of the record in Unix nanoseconds.
	Committed int64
	Blocks    []Block
	Replaces  []string // ids of blocks
	Deletes   bool
	Covered   []Coverage
}

// Name returns the name of the record's object.
func (s *Stored) Name() string { return recordName(s.ID) }

// CopyName returns the name of the copy of an object.
func CopyName(name string) string { return copyName(name) }

// Names of objects, and what names begin with.
const (
	SeedName        = "seed"
	BlockPrefix     = entry.BlockPrefix
	RecordPrefix    = "catalog/"
	CopyPrefix      = "copies/"
	CollectedPrefix = "collected/"
	UploadPrefix    = "uploads/"
	// TopicPrefix begins the names of the objects of package topics.
	TopicPrefix = "kafka-"
	// FamilyPrefix begins those of package families.
	FamilyPrefix = "families/"
	// DecisionPrefix begins those of package decision.
	DecisionPrefix = "deletions/"
)

// maxListings bounds how often ReadStored lists a bucket whose records change all the time.
const maxListings = 100

// ReadStored reads every commit record of a bucket, as they are at one moment: it lists them until two
// listings in a row agree, because a store may list a record and not an earlier one. A record that cannot be
// read is an error of class corrupt.
func ReadStored(ctx context.Context, b Reader) ([]Stored, error) {
	read := map[string]*Stored{}
	var before []string
	for n := range maxListings {
		var ids []string
		err := b.List(ctx, RecordPrefix, func(name string, _ int64) error {
			id, err := recordOf(name)
			ids = append(ids, id)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("catalogue: %w", err)
		}
		slices.Sort(ids)
		if n > 0 && slices.Equal(ids, before) {
			all := make([]Stored, 0, len(ids))
			for _, id := range ids {
				all = append(all, *read[id])
			}
			return all, nil
		}
		if before, err = ReadListed(ctx, b, ids, read); err != nil {
			return nil, fmt.Errorf("catalogue: %w", err)
		}
	}
	return nil, fmt.Errorf("catalogue: %w: the commit records changed between any two of %d listings", model.ErrTransient, maxListings)
}

// ReadListed reads the records that are not in read yet, and drops those that are not listed. It returns the
// ids that are left, which are fewer than ids if records were collected meanwhile.
func ReadListed(ctx context.Context, b Reader, ids []string, read map[string]*Stored) ([]string, error) {
	found := make([]*Stored, len(ids))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelReads)
	for i, id := range ids {
		if found[i] = read[id]; found[i] != nil {
			continue
		}
		g.Go(model.Catching(func() error {
			data, err := b.Get(ctx, recordName(id))
			if errors.Is(err, bucket.ErrNotFound) {
				return nil
			}
			var r *commit
			if err == nil {
				r, err = parseRecord(recordName(id), data)
			}
			if err == nil {
				found[i] = &Stored{ID: id, Data: data, Committed: r.committed, Blocks: r.blocks, Replaces: r.replaces, Deletes: r.deletion != nil, Covered: r.covered}
			}
			return err
		}))
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	clear(read)
	for _, s := range found {
		if s != nil {
			read[s.ID] = s
		}
	}
	return slices.Sorted(maps.Keys(read)), nil
}

// NotCollected returns the ids of those of the records, read earlier or from another copy of the bucket, that
// no list of collected records of the bucket names.
func NotCollected(ctx context.Context, b Reader, records []Stored) ([]string, error) {
	missing := map[string]*commit{}
	for i := range records {
		missing[records[i].ID] = &commit{id: records[i].ID, committed: records[i].Committed}
	}
	if _, err := collectedAmong(ctx, b, missing, func(string) bool { return false }); err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	return slices.Sorted(maps.Keys(missing)), nil
}
