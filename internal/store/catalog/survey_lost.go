package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// SpareRecord is a record that is lost or damaged, with what is left of it.
type SpareRecord struct {
	// Name is that of the record's object.
	Name string
	// From is where its content is intact: "its copy", "the memory", or empty.
	From string
	// commit and data are the content.
	commit *commit
	data   []byte
}

// spare looks for the content of a record.
func (s *Survey) spare(ctx context.Context, name string) SpareRecord {
	found := SpareRecord{Name: name}
	try := func(from string, r Reader, object string) {
		if found.commit != nil || r == nil {
			return
		}
		data, err := r.Get(ctx, object)
		if err != nil {
			return
		}
		if c, err := parseRecord(name, data); err == nil {
			found.From, found.commit, found.data = from, c, data
		}
	}
	try("its copy", s.bucket, copyName(name))
	try("the memory", s.memory, name)
	return found
}

// findLost adds the records that have a copy and are missing, and returns their contents.
func (s *Survey) findLost(ctx context.Context, listed []string) (records []*commit, err error) {
	names := map[string]bool{}
	for name := range s.copied {
		names[name] = true
	}
	if s.memory != nil {
		err := s.memory.List(ctx, RecordPrefix, func(name string, _ int64) error {
			names[name] = true
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	missing, spares := map[string]*commit{}, map[string]SpareRecord{}
	for name := range names {
		id, err := recordOf(name)
		if _, found := slices.BinarySearch(listed, name); found || err != nil {
			continue
		}
		// It may have been written, or collected with its copy, since the listings.
		if _, err := s.bucket.Get(ctx, name); !errors.Is(err, bucket.ErrNotFound) {
			continue
		}
		spare := s.spare(ctx, name)
		if spare.commit != nil {
			missing[id], spares[id] = spare.commit, spare
		} else if _, err := s.bucket.Get(ctx, copyName(name)); err == nil {
			s.Lost = append(s.Lost, spare)
		}
	}
	if _, err := collectedAmong(ctx, s.bucket, missing, func(string) bool { return false }); err != nil {
		return nil, err
	}
	for id, r := range missing {
		s.Lost = append(s.Lost, spares[id])
		records = append(records, r)
	}
	slices.SortFunc(s.Lost, func(a, b SpareRecord) int { return strings.Compare(a.Name, b.Name) })
	for _, l := range s.Lost {
		err := fmt.Errorf("%w: %s is lost; %s has its content", model.ErrCorrupt, l.Name, l.From)
		if l.commit == nil {
			err = fmt.Errorf("%w: %s is lost, and its copy %s cannot be read", model.ErrCorrupt, l.Name, copyName(l.Name))
		}
		s.Problems = append(s.Problems, err)
	}
	return records, nil
}

// checkCopy adds a problem if the copy of an intact record cannot be read.
func (s *Survey) checkCopy(ctx context.Context, name string) {
	data, err := s.bucket.Get(ctx, copyName(name))
	if err == nil {
		_, err = parseRecord(name, data)
	}
	if err != nil && !errors.Is(err, bucket.ErrNotFound) {
		s.badCopies = append(s.badCopies, name)
		s.Problems = append(s.Problems, fmt.Errorf("%s: the copy is damaged: %w", copyName(name), err))
	}
}

// findStrays moves blocks without the marker of an upload from the orphans to the strays.
func (s *Survey) findStrays(ctx context.Context, marked map[string]bool) error {
	var orphans []SurveyObject
	for _, o := range s.Orphans {
		if marked[strings.TrimPrefix(o.Name, BlockPrefix)] {
			orphans = append(orphans, o)
			continue
		}
		size, err := sizeOf(ctx, s.bucket, o.Name) // it may have been collected since the listing
		if err != nil {
			return err
		}
		if size >= 0 {
			s.Strays = append(s.Strays, o)
			s.Problems = append(s.Problems, fmt.Errorf("%w: %s has no commit record, and was not left by an upload: its record is lost with its copies", model.ErrCorrupt, o.Name))
		}
	}
	s.Orphans = orphans
	return nil
}
