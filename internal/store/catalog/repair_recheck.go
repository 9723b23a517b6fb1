package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/repair"
)

// The functions here read what a step assumes right before it acts. They return [repair.ErrOutdated] if it is
// not so any more.

// stillDamaged expects an object that is a damaged record of a name.
func (r *Repairer) stillDamaged(ctx context.Context, name, object string) error {
	data, err := r.Bucket.Get(ctx, object)
	if errors.Is(err, bucket.ErrNotFound) {
		return fmt.Errorf("%w: %s is gone", repair.ErrOutdated, object)
	}
	if err != nil {
		return err
	}
	if _, err := parseRecord(name, data); !errors.Is(err, model.ErrCorrupt) {
		return fmt.Errorf("%w: %s is not corrupt", repair.ErrOutdated, object)
	}
	return nil
}

// stillThere expects an object of certain bytes.
func (r *Repairer) stillThere(ctx context.Context, name string, data []byte) error {
	now, err := r.Bucket.Get(ctx, name)
	if errors.Is(err, bucket.ErrNotFound) {
		return fmt.Errorf("%w: %s is gone", repair.ErrOutdated, name)
	}
	if err == nil && !bytes.Equal(now, data) {
		return fmt.Errorf("%w: %s has another content", repair.ErrOutdated, name)
	}
	return err
}

// stillHolds expects an intact record of a block.
func (r *Repairer) stillHolds(ctx context.Context, name, id string) error {
	data, err := r.Bucket.Get(ctx, name)
	if err != nil && !errors.Is(err, bucket.ErrNotFound) {
		return err
	}
	if c, err := parseRecord(name, data); err != nil || c.entry(id) == nil {
		return fmt.Errorf("%w: %s is not there, or not a record of %s", repair.ErrOutdated, name, ObjectName(id))
	}
	return nil
}

// stillLost expects a record to be missing, and not because a server has collected it. Its content is nil if
// it is not known.
func (r *Repairer) stillLost(ctx context.Context, name string, c *commit) error {
	if _, err := r.Bucket.Get(ctx, name); err == nil {
		return fmt.Errorf("%w: %s is back", repair.ErrOutdated, name)
	} else if !errors.Is(err, bucket.ErrNotFound) {
		return err
	}
	if c == nil {
		return nil
	}
	return r.stillMeant(ctx, c)
}

// stillMeant expects that a record is on no list of collected ones.
func (r *Repairer) stillMeant(ctx context.Context, c *commit) error {
	left := map[string]*commit{c.id: c}
	if _, err := collectedAmong(ctx, r.Bucket, left, func(string) bool { return false }); err != nil {
		return err
	}
	if len(left) == 0 {
		return fmt.Errorf("%w: %s was collected or given up", repair.ErrOutdated, recordName(c.id))
	}
	return nil
}

// stillSized expects the object of a block to have a size, or to be missing (-1).
func (r *Repairer) stillSized(ctx context.Context, id string, size int64) error {
	now, err := sizeOf(ctx, r.Bucket, ObjectName(id))
	if err == nil && now != size {
		return fmt.Errorf("%w: %s had %d bytes and has %d (-1: it is missing)", repair.ErrOutdated, ObjectName(id), size, now)
	}
	return err
}

// stillNoSeed expects the seed or its copy to be missing or damaged.
func (r *Repairer) stillNoSeed(ctx context.Context, name string) error {
	now, err := readSeedObject(ctx, r.Bucket, name)
	if err == nil {
		return fmt.Errorf("%w: %s is %016x", repair.ErrOutdated, name, uint64(now))
	}
	if errors.Is(err, bucket.ErrNotFound) || errors.Is(err, model.ErrCorrupt) {
		return nil
	}
	return err
}

// stillStray expects a block to be there, without an upload and without a record. It reads the records that
// were not intact in the survey.
func (r *Repairer) stillStray(ctx context.Context, s *Survey, o SurveyObject) error {
	id := o.Name[len(BlockPrefix):]
	if err := r.stillSized(ctx, id, o.Bytes); err != nil {
		return err
	}
	err := r.Bucket.List(ctx, UploadPrefix+id+".", func(name string, _ int64) error {
		return fmt.Errorf("%w: the block is being uploaded: %s", repair.ErrOutdated, name)
	})
	if err != nil {
		return err
	}
	var news []string
	err = r.Bucket.List(ctx, RecordPrefix, func(name string, _ int64) error {
		if s.contents[name] == nil {
			news = append(news, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range news {
		data, err := r.Bucket.Get(ctx, name)
		if err != nil && !errors.Is(err, bucket.ErrNotFound) {
			return err
		}
		c, err := parseRecord(name, data)
		if err != nil && name == recordName(id) && data != nil {
			return fmt.Errorf("%w: %s exists and is damaged; set it aside first", repair.ErrOutdated, name)
		}
		if err != nil {
			continue // as damaged as in the survey, or the next survey reports it
		}
		if c.entry(id) != nil {
			return fmt.Errorf("%w: the block has a record: %s", repair.ErrOutdated, name)
		}
	}
	return nil
}

// putBack writes a record or its copy, unless a server has collected the record meanwhile. Servers write
// their list before they delete. So either the list is there now, and what was written goes again, or they
// delete it.
func (r *Repairer) putBack(ctx context.Context, l SpareRecord, write func() error) error {
	if err := r.stillMeant(ctx, l.commit); err != nil {
		return err
	}
	if err := write(); err != nil {
		return err
	}
	err := r.stillMeant(ctx, l.commit)
	if errors.Is(err, repair.ErrOutdated) {
		return errors.Join(err, r.Bucket.Delete(ctx, copyName(l.Name)), r.Bucket.Delete(ctx, l.Name))
	}
	return err
}
