package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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
	for _, folder := range []string{headFolder, journalFolder} {
		names, err := fs.List(fs.PathJoin(dir, folder))
		if errors.Is(err, os.ErrNotExist) || err == nil && len(names) == 0 {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", model.ErrTransient, fs.PathJoin(dir, folder), err)
		}
		folders = append(folders, folder)
	}
	if len(folders) == 0 {
		return nil, nil
	}
	const why = "the manifest of the local parts and its copy are damaged or missing"
	step := repair.Step{
		File: strings.Join(folders, ", "), Why: why, Action: "set the folders aside; blocks in the bucket stay",
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
	return []repair.Step{step}, nil
}

// missingJournal notes that the journal is missing; the next start makes a new one.
func missingJournal(fs vfs.FS, dir string, covered uint64) repair.Step {
	why := fmt.Sprintf("the folder is missing; parts hold the records up to %d", covered)
	loss := fmt.Sprintf("rows of the journal from record %d on, if there were any", covered+1)
	return repair.Step{File: journalFolder, Why: why, Action: "make an empty folder", Loss: loss, Do: func(context.Context) error {
		if err := repair.Record(fs, dir, journalFolder, repair.Note{Why: why, Lost: &repair.Lost{What: repair.Rows, Text: loss}}); err != nil {
			return err
		}
		return fs.MkdirAll(fs.PathJoin(dir, journalFolder), 0o755)
	}}
}
