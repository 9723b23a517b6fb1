package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/app"
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
	if _, err := repairAll(ctx, p, steps, i.Yes); err != nil {
		return err
	}
	if steps, err = app.PlanRepair(ctx, vfs.Default, dir); err == nil && len(steps) > 0 {
		err = fmt.Errorf("%d files are still damaged, the first is %s: %s", len(steps), steps[0].Object, steps[0].Why)
	}
	return err
}
