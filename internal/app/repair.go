package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/journal/local"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/repair"
	"github.com/shaledb/shale/internal/store/head"
)

const (
	journalFolder = "journal"
	headFolder    = "head"
)

// LockFolder takes the lock of a data folder, so that no server uses it. An error of class invalid says that
// another process has it.
func LockFolder(fs vfs.FS, dir string) (io.Closer, error) { return lockFolder(fs, dir) }

// PlanRepair reads all local files of a data folder and returns the repairs that make a server start on it.
// It changes nothing. The caller holds the lock of the folder.
func PlanRepair(ctx context.Context, fs vfs.FS, dir string) ([]repair.Step, error) {
	steps, m, err := head.Repairs(ctx, fs, dir, headFolder)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return withoutManifest(fs, dir)
	}
	if m.Covered == 0 && len(m.Parts) == 0 {
		// The manifest of a folder that was never flushed. Its journal begins with record 1.
		first, err := local.FirstRecord(fs, fs.PathJoin(dir, journalFolder))
		if err != nil {
			return nil, err
		}
		if first > 1 {
			return append(steps, lostHead(fs, dir, first)), nil
		}
	}
	more, err := local.Repairs(ctx, fs, dir, journalFolder, m.Seed, m.Covered)
	if errors.Is(err, os.ErrNotExist) {
		return append(steps, missingJournal(fs, dir, m.Covered)), nil
	}
	return append(steps, more...), err
}

// withoutManifest sets the local parts and the journal aside, as nothing says which parts belong together and
// which records they hold.
func withoutManifest(fs vfs.FS, dir string) ([]repair.Step, error) {
	var folders []string
	// The journal goes first. After a kill in between, the next start would make a new manifest for a journal
	// whose first records are in no part.
	for _, folder := range []string{journalFolder, headFolder} {
		names, err := fs.List(fs.PathJoin(dir, folder))
		if errors.Is(err, os.ErrNotExist) || err == nil && len(names) == 0 {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", model.ErrTransient, fs.PathJoin(dir, folder), err)
		}
		folders = append(folders, folder)
	}
	if slices.Equal(folders, []string{journalFolder}) {
		first, err := local.FirstRecord(fs, fs.PathJoin(dir, journalFolder))
		if err != nil || first <= 1 {
			return nil, err // the journal has all records, or none
		}
		return []repair.Step{lostHead(fs, dir, first)}, nil
	}
	if len(folders) == 0 {
		return nil, nil
	}
	return []repair.Step{setAside(fs, dir, "the manifest of the local parts and its copy are damaged or missing", folders...)}, nil
}

// lostHead sets a journal aside whose first records are in no part.
func lostHead(fs vfs.FS, dir string, first uint64) repair.Step {
	step := setAside(fs, dir, fmt.Sprintf("it begins with record %d, and the folder %s has no parts with the records before", first, headFolder), journalFolder)
	move := step.Do
	step.Do = func(ctx context.Context) error {
		if err := move(ctx); err != nil {
			return err
		}
		return fs.MkdirAll(fs.PathJoin(dir, journalFolder), 0o755)
	}
	return step
}

func setAside(fs vfs.FS, dir, why string, folders ...string) repair.Step {
	step := repair.Step{
		Object: strings.Join(folders, ", "), Why: why, Action: "set the folders aside; blocks in the bucket stay",
		Loss: "all rows that are not in the bucket: usually of the last two or three hours",
	}
	step.Do = func(context.Context) error {
		for _, folder := range folders {
			n := repair.Note{Why: why, Lost: &repair.Lost{What: repair.Rows, Text: "rows that were not in the bucket"}}
			if err := repair.Move(fs, dir, folder, n); err != nil {
				return err
			}
		}
		return nil
	}
	return step
}

// missingJournal notes that the journal is missing; the next start makes a new one.
func missingJournal(fs vfs.FS, dir string, covered uint64) repair.Step {
	why := fmt.Sprintf("the folder is missing; parts hold the records up to %d", covered)
	loss := fmt.Sprintf("rows of the journal from record %d on, if there were any", covered+1)
	return repair.Step{Object: journalFolder, Why: why, Action: "make an empty folder", Loss: loss, Do: func(context.Context) error {
		if err := repair.Record(fs, dir, journalFolder, repair.Note{Why: why, Lost: &repair.Lost{What: repair.Rows, Text: loss}}); err != nil {
			return err
		}
		return fs.MkdirAll(fs.PathJoin(dir, journalFolder), 0o755)
	}}
}
