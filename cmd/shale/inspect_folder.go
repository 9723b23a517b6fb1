package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/dustin/go-humanize/english"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/journal/local"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/repair"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/store/part"
)

type inspectJournalCmd struct {
	Dir   string `arg:"" type:"existingdir" help:"Folder of the journal."`
	Check bool   `help:"Only verify the records, without listing them."`
}

// Run lists or checks.
func (i *inspectJournalCmd) Run(ctx context.Context, p *process) error {
	if err := hasSegments(i.Dir); err != nil {
		return err
	}
	if !i.Check {
		return local.Dump(ctx, p.stdout, vfs.Default, i.Dir)
	}
	if err := local.Check(ctx, vfs.Default, i.Dir); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.stdout, "%s: in order\n", i.Dir)
	return err
}

// hasSegments refuses a folder without segments: a journal has one from its start on.
func hasSegments(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".journal") {
			return nil
		}
	}
	return fmt.Errorf("%s has no segment of a journal (*.journal)", dir)
}

type inspectFolderCmd struct {
	Dir    string `arg:"" type:"existingdir" help:"Data folder."`
	Check  bool   `xor:"what" help:"Read and verify every file."`
	Repair bool   `xor:"what" help:"Read every local file, and then ask about each repair that is possible. What is damaged is set aside, nothing is deleted. No server may run meanwhile."`
	Yes    bool   `help:"With --repair: do all repairs without asking."`

	// seed is the key seed of the folder's bucket, once it has been read; 0: unknown.
	seed model.KeySeed
}

// journalDir, headDir and bucketDir are the names of the folders of a data folder.
const (
	journalDir = "journal"
	headDir    = "head"
	bucketDir  = "bucket"
)

// Run lists every file, and with --check reads it. It continues after damage, to report all of it.
func (i *inspectFolderCmd) Run(ctx context.Context, p *process) error {
	if i.Yes && !i.Repair {
		return usageError{errors.New("--yes needs --repair")}
	}
	if i.Repair {
		return i.repairFolder(ctx, p)
	}
	if i.Check {
		if err := i.isDataFolder(); err != nil {
			return err
		}
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	var damaged []string
	err := filepath.WalkDir(i.Dir, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a running server has replaced it
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		text, err := i.entry(ctx, name, d)
		if err != nil {
			damaged = append(damaged, name)
			text = strings.ReplaceAll(err.Error(), "\n", "; ") // a line for each file
		}
		if text != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, text)
		}
		return nil
	})
	if err := errors.Join(err, w.Flush()); err != nil {
		return err
	}
	if n := len(damaged); n > 0 {
		const most = 10
		return fmt.Errorf("%s damaged or unreadable:\n  %s\n%s", english.Plural(n, "file or folder", "files or folders"), strings.Join(damaged[:min(n, most)], "\n  "), i.remedy())
	}
	return nil
}

// isDataFolder tells a data folder from a folder that is not one. A data folder that lacks one of its folders
// is damaged.
func (i *inspectFolderCmd) isDataFolder() error {
	var missing []string
	for _, name := range []string{journalDir, headDir} {
		info, err := os.Stat(filepath.Join(i.Dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, name)
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is not a data folder of Shale: %s in it is not a folder", i.Dir, name)
		}
	}
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%s is damaged or not a data folder of Shale: it has no folder %s.\n%s", i.Dir, missing[0], i.remedy())
	}
	return fmt.Errorf("%s is not a data folder of Shale: it has neither a folder %s nor a folder %s", i.Dir, headDir, journalDir)
}

// remedy is the end of errors about damage.
func (i *inspectFolderCmd) remedy() string {
	return fmt.Sprintf("To set damaged local files aside, stop the server and run: shale inspect folder %s --repair", i.Dir)
}

// entry describes a file, or a journal's folder as a whole. Its error describes the damage.
func (i *inspectFolderCmd) entry(ctx context.Context, name string, d fs.DirEntry) (string, error) {
	if d.IsDir() {
		return i.folder(ctx, name)
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
		text += fmt.Sprintf(", %s, %s", contents(m), times(m.Range))
		if i.Check {
			text += ", in order"
			if i.seed != 0 && m.Seed != i.seed {
				return fmt.Errorf("%w: its key seed is %016x, but the bucket's is %016x: they belong to different stores", model.ErrCorrupt, uint64(m.Seed), uint64(i.seed))
			}
			return part.Check(ctx, r)
		}
		return nil
	})
	return text, err
}

// folder checks the files of a folder against each other.
func (i *inspectFolderCmd) folder(ctx context.Context, name string) (string, error) {
	if !i.Check || filepath.Dir(name) != filepath.Clean(i.Dir) {
		return "", nil
	}
	switch filepath.Base(name) {
	case journalDir:
		if err := hasSegments(name); err != nil {
			return "", err
		}
		return "records in order", local.Check(ctx, vfs.Default, name)
	case headDir:
		return "parts and manifest in order", head.Check(ctx, vfs.Default, name)
	case bucketDir:
		b, err := bucketfs.New(vfs.Default, name)
		if err != nil {
			return "", err
		}
		memory, err := memoryOf(i.Dir)
		if err != nil {
			return "", err
		}
		survey, err := catalog.ReadSurvey(ctx, b, memory)
		if err != nil {
			return "", err
		}
		i.seed = survey.Seed // the walk reaches bucket before head
		return "seed and catalogue in order", errors.Join(survey.Problems...)
	}
	return "", nil
}

// isPart reports, from its path, whether a file is meant to be a part: a local one or a block of the bucket.
func isPart(name string) bool {
	if strings.HasSuffix(name, ".tmp") || slices.Contains(strings.Split(filepath.ToSlash(name), "/"), repair.Folder) {
		return false
	}
	ext := filepath.Ext(name)
	return ext == ".part" || ext == ".block" || filepath.Base(filepath.Dir(name)) == "blocks"
}
