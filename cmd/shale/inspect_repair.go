package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/app"
	"github.com/shaledb/shale/internal/repair"
)

// repairFolder sets the damaged local files of a data folder aside, once the user agrees.
func (i *inspectFolderCmd) repairFolder(ctx context.Context, p *process) error {
	dir, err := filepath.Abs(i.Dir)
	if err != nil {
		return err
	}
	_, noHead := os.Stat(filepath.Join(dir, headDir))
	_, noJournal := os.Stat(filepath.Join(dir, journalDir))
	if noHead != nil && noJournal != nil {
		return fmt.Errorf("%s is not a data folder of Shale: it has neither a folder %s nor a folder %s", i.Dir, headDir, journalDir)
	}
	lock, err := app.LockFolder(vfs.Default, dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	steps, err := app.PlanRepair(ctx, vfs.Default, dir)
	if err != nil {
		return err
	}
	if len(steps) == 0 {
		_, err := fmt.Fprintln(p.stdout, "nothing to repair")
		return err
	}
	if _, err := repairSteps(ctx, p, steps, i.Yes); err != nil {
		return err
	}
	if steps, err = app.PlanRepair(ctx, vfs.Default, dir); err == nil && len(steps) > 0 {
		err = fmt.Errorf("%d files are still damaged, the first is %s: %s", len(steps), steps[0].File, steps[0].Why)
	}
	return err
}

// repairSteps asks about each repair and does it. It returns how many were done.
func repairSteps(ctx context.Context, p *process, steps []repair.Step, yes bool) (done int, err error) {
	for _, s := range steps {
		fmt.Fprintf(p.stdout, "%s: %s\n  repair: %s\n", s.File, strings.ReplaceAll(s.Why, "\n", "; "), s.Action)
		if s.Loss != "" {
			fmt.Fprintf(p.stdout, "  queries will lack: %s\n", s.Loss)
		}
		if !yes && !confirm(p, "Repair it?") {
			fmt.Fprintln(p.stdout, "left as it is")
			continue
		}
		if err := s.Do(ctx); err != nil {
			return done, fmt.Errorf("repair %s: %w", s.File, err)
		}
		fmt.Fprintln(p.stdout, "repaired")
		done++
	}
	return done, nil
}
