package app

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/shaledb/shale/internal/app/disk"
	"github.com/shaledb/shale/internal/model"
)

// Writable returns an error of class transient while writes are refused for want of disk space.
func (e *Engine) Writable() error {
	if err := e.readOnly.Load(); err != nil {
		return err
	}
	return e.o.Disk.Room()
}

// acceptWrites starts the journal. If the disk is full or read-only, queries work nevertheless: writes are
// refused, and the start is tried again until it succeeds.
func (e *Engine) acceptWrites(ctx context.Context) error {
	err := e.startJournal(ctx)
	if !refusesWrites(err) {
		return err
	}
	e.refuseWrites(err)
	e.o.Logger.Error("the disk takes no writes: serving queries, and refusing writes until it does", "data_dir", e.o.DataDir, "err", err)
	retry, cancel := context.WithCancel(context.Background())
	e.retrying.stop = cancel
	e.retrying.done.Go(func() { e.retryStart(retry) })
	return nil
}

func (e *Engine) retryStart(ctx context.Context) {
	tick := time.NewTicker(disk.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := e.startJournal(ctx)
		if err == nil {
			e.readOnly.Store(nil)
			e.o.Logger.Info("the disk takes writes again: accepting writes", "data_dir", e.o.DataDir)
			return
		}
		e.refuseWrites(err)
	}
}

func (e *Engine) refuseWrites(err error) {
	e.readOnly.Store(&model.LimitError{Limit: "disk", Text: fmt.Sprintf(
		"the file system of the data folder %s takes no writes; make room there: %v", e.o.DataDir, err)})
}

// stopRetrying ends the attempts to start the journal.
func (e *Engine) stopRetrying() {
	if e.retrying.stop != nil {
		e.retrying.stop()
		e.retrying.done.Wait()
	}
}

// refusesWrites reports whether an error is that of a disk that is full or read-only, but can be read.
func refusesWrites(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS)
}

// startJournal makes the journal ready for writes. It may be called again after an error.
func (e *Engine) startJournal(ctx context.Context) error {
	last := max(e.journal.LastSeq(), e.head.Covered())
	if err := e.head.Advance(ctx, last); err != nil {
		return err
	}
	if err := e.journal.Start(last + 1); err != nil {
		return err
	}
	e.started.Store(true)
	// The journal can be started only once, and works with old segments: an error must not lead to another try.
	if err := e.journal.Truncate(e.head.Covered()); err != nil {
		e.o.Logger.Error("cannot delete old segments of the journal; a later flush tries again", "err", err)
	}
	return nil
}

// roomToMerge reserves room on the disk to merge blocks of that many bytes. The result stays in the data
// folder until it is in the bucket, which may be on the same disk, and the inputs are deleted later.
func (e *Engine) roomToMerge(bytes int64) (release func(), err error) {
	return e.o.Disk.Reserve(2 * bytes)
}
