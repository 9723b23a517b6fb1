package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/journal/local"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/store/part"
)

type inspectJournalCmd struct {
	Dir   string `arg:"" type:"existingdir" help:"The journal's folder."`
	Check bool   `help:"Say only whether every record is in order."`
}

// Run lists or checks.
func (i *inspectJournalCmd) Run(ctx context.Context, p *process) error {
	if !i.Check {
		return local.Dump(ctx, p.stdout, vfs.Default, i.Dir)
	}
	if err := local.Check(ctx, vfs.Default, i.Dir); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.stdout, "%s: in order\n", i.Dir)
	return err
}

type inspectFolderCmd struct {
	Dir   string `arg:"" type:"existingdir" help:"The data folder."`
	Check bool   `help:"Read everything and verify all that can be verified."`
}

// journalDir and headDir are the names of these rooms' folders in a data folder.
const (
	journalDir = "journal"
	headDir    = "head"
)

// Run lists every file, and with --check reads it. It goes on after damage, so that all of it is known.
func (i *inspectFolderCmd) Run(ctx context.Context, p *process) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	damaged := 0
	err := filepath.WalkDir(i.Dir, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a server that runs has replaced it
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		text, err := i.entry(ctx, name, d)
		if err != nil {
			damaged++
			text = err.Error()
		}
		if text != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, text)
		}
		return nil
	})
	if err := errors.Join(err, w.Flush()); err != nil {
		return err
	}
	if damaged > 0 {
		return fmt.Errorf("%d files are damaged or cannot be read", damaged)
	}
	return nil
}

// entry describes a file, and a journal's folder as a whole. Its error is what is wrong with it.
func (i *inspectFolderCmd) entry(ctx context.Context, name string, d fs.DirEntry) (string, error) {
	if d.IsDir() {
		switch {
		case i.Check && d.Name() == journalDir:
			return "records in order", local.Check(ctx, vfs.Default, name)
		case i.Check && d.Name() == headDir:
			return "parts and manifest in order", head.Check(ctx, vfs.Default, name)
		}
		return "", nil
	}
	info, err := d.Info()
	if err != nil {
		return "", err
	}
	text := config.Size(info.Size()).String()
	if !isPart(name) {
		return text, nil
	}
	err = withPart(ctx, name, func(r *part.Reader) error {
		m := r.Meta()
		text += fmt.Sprintf(", %d series, %d samples, %s", m.Series, m.Samples, times(m.Range))
		if i.Check {
			text += ", in order"
			return part.Check(ctx, r)
		}
		return nil
	})
	return text, err
}

// isPart tells by its place and name whether a file is to be a part: a local one or a block of the bucket.
func isPart(name string) bool {
	if strings.HasSuffix(name, ".tmp") {
		return false
	}
	ext := filepath.Ext(name)
	return ext == ".part" || ext == ".block" || filepath.Base(filepath.Dir(name)) == "blocks"
}
