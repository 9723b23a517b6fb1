package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/dustin/go-humanize/english"

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
	if _, err := repairAll(ctx, p, steps, i.Yes); err != nil {
		return err
	}
	if steps, err = app.PlanRepair(ctx, vfs.Default, dir); err == nil && len(steps) > 0 {
		err = fmt.Errorf("%s still damaged, first %s: %s", english.Plural(len(steps), "file", ""), steps[0].Object, steps[0].Why)
	}
	return err
}

// confirm asks on standard output and reads the reply from standard input. Only y and yes mean yes.
func confirm(p *process, question string) bool {
	fmt.Fprintf(p.stdout, "%s [y/N] ", question)
	if p.replies == nil {
		if p.stdin == nil {
			p.stdin = strings.NewReader("")
		}
		p.replies = bufio.NewReader(p.stdin)
	}
	line, err := p.replies.ReadString('\n')
	if err != nil {
		fmt.Fprintln(p.stdout)
		if !errors.Is(err, io.EOF) {
			return false
		}
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true
	}
	return false
}

// repairAll asks about each step and does it. It returns how many were done.
func repairAll(ctx context.Context, p *process, steps []repair.Step, yes bool) (done int, err error) {
	for _, r := range steps {
		fmt.Fprintf(p.stdout, "\n%s: %s\n  repair: %s\n", r.Object, strings.ReplaceAll(r.Why, "\n", "; "), r.Action)
		if r.Loss != "" {
			fmt.Fprintf(p.stdout, "  queries will lack: %s\n", r.Loss)
		}
		if !yes && !confirm(p, "Repair it?") {
			fmt.Fprintln(p.stdout, "left as it is")
			continue
		}
		err := r.Do(ctx)
		if errors.Is(err, repair.ErrOutdated) {
			fmt.Fprintf(p.stdout, "left as it is: %v\n", err)
			continue
		}
		if err != nil {
			return done, fmt.Errorf("repair %s: %w", r.Object, err)
		}
		fmt.Fprintln(p.stdout, "repaired")
		done++
	}
	return done, nil
}
