package bucketcopy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// target is the bucket that is written, as it was before, and what this copy has added.
type target struct {
	b bucket.Bucket
	// seeded says that an earlier copy was completed.
	seeded bool
	// sizes are those of the blocks' objects, lists the names of lists of collected records.
	sizes map[string]int64
	lists map[string]bool
	// records are the commit records by id, copies the names of those that have a copy.
	records map[string]*catalog.Stored
	copies  map[string]bool
	// extra are records that the source has collected since they were copied.
	extra []catalog.Stored

	mu sync.Mutex
	// verified are blocks that are in the target and intact; marked are those with a marker of a copy.
	verified, marked map[string]bool
}

// markerSuffix ends the names of the markers of uploads by a copy.
const markerSuffix = ".copy"

func markerName(id string) string { return catalog.UploadPrefix + id + markerSuffix }

// openTarget reads what the target has. It refuses the bucket of other data.
func openTarget(ctx context.Context, b bucket.Bucket, seed model.KeySeed) (*target, error) {
	t := &target{
		b: b, sizes: map[string]int64{}, lists: map[string]bool{}, records: map[string]*catalog.Stored{}, copies: map[string]bool{},
		verified: map[string]bool{}, marked: map[string]bool{},
	}
	got, err := catalog.Seed(ctx, b)
	switch {
	case err == nil && got != seed:
		return nil, fmt.Errorf("%w: the target is another bucket: its seed is %016x, and that of the source %016x", model.ErrInvalid, uint64(got), uint64(seed))
	case err == nil:
		t.seeded = true
		if err := healthy(ctx, "target", b); err != nil {
			return nil, err
		}
	case !errors.Is(err, bucket.ErrNotFound):
		return nil, fmt.Errorf("target: %w", err)
	}
	if err := b.List(ctx, "", t.note); err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	records, err := catalog.ReadStored(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	for i := range records {
		r := &records[i]
		t.records[r.ID] = r
		for _, block := range r.Blocks { // a copy writes records after it has verified all blocks
			t.verified[block.ID] = t.sizes[block.ID] == block.Bytes
		}
	}
	return t, nil
}

// note remembers an object of the listing.
func (t *target) note(name string, size int64) error {
	id, isBlock := strings.CutPrefix(name, catalog.BlockPrefix)
	upload, isUpload := strings.CutPrefix(name, catalog.UploadPrefix)
	switch {
	case isBlock:
		t.sizes[id] = size
	case isUpload:
		if id, ok := strings.CutSuffix(upload, markerSuffix); ok {
			t.marked[id] = true
		}
	case strings.HasPrefix(name, catalog.CollectedPrefix):
		t.lists[name] = true
	case strings.HasPrefix(name, catalog.CopyPrefix):
		t.copies[strings.TrimPrefix(name, catalog.CopyPrefix)] = true
	case !t.seeded && name != catalog.SeedName && !strings.HasPrefix(name, catalog.RecordPrefix) && !strings.HasPrefix(name, catalog.TopicPrefix):
		return fmt.Errorf("%w: it is neither empty nor a bucket of Shale: it has the object %s", model.ErrInvalid, name)
	}
	return nil
}

// compare finds the records that the source has collected. A record that the source never had is an error:
// a server has written to the target, and a copy would mix two histories.
func (t *target) compare(ctx context.Context, from bucket.Bucket, source []catalog.Stored) error {
	have := map[string]bool{}
	for i := range source {
		s := &source[i]
		have[s.ID] = true
		if r := t.records[s.ID]; r != nil && !sameMeaning(r, s) {
			return fmt.Errorf("%w: the record %s of the target is not that of the source: a server has written to the target; copy to an empty one", model.ErrInvalid, s.ID)
		}
	}
	t.extra = t.extra[:0]
	for id, r := range t.records {
		if !have[id] {
			t.extra = append(t.extra, *r)
		}
	}
	if len(t.extra) == 0 {
		return nil
	}
	unknown, err := catalog.NotCollected(ctx, from, t.extra)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	if len(unknown) > 0 {
		return fmt.Errorf("%w: the target has %s that the source does not have and has not collected in 30 days, such as %s: a server has written to the target, or the copy is too old; copy to an empty target",
			model.ErrInvalid, english.Plural(len(unknown), "record", ""), unknown[0])
	}
	return nil
}

// sameMeaning reports whether two records of one id make the same blocks visible and hide the same ones. A
// merge that was repeated after a lost response may have another time.
func sameMeaning(a, b *catalog.Stored) bool {
	if bytes.Equal(a.Data, b.Data) {
		return true
	}
	if a.Deletes || b.Deletes || len(b.Replaces) == 0 {
		return false
	}
	ids := func(s *catalog.Stored) (all []string) {
		for i := range s.Blocks {
			all = append(all, s.Blocks[i].ID)
		}
		return all
	}
	return slices.Equal(ids(a), ids(b)) && slices.Equal(a.Replaces, b.Replaces)
}

// mark announces the upload of a block: readers take a block with a marker and without a record for an upload
// that was not committed.
func (t *target) mark(ctx context.Context, id string) error {
	t.mu.Lock()
	marked := t.marked[id]
	t.marked[id] = true
	t.mu.Unlock()
	if marked {
		return nil
	}
	_, err := t.b.PutIfAbsent(ctx, markerName(id), []byte(id+"\n"))
	return err
}

// keep notes that a block is in the target and intact.
func (t *target) keep(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.verified[id] = true
}

func (t *target) isVerified(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.verified[id]
}
