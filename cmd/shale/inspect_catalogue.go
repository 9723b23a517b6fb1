package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/repair"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/compact"
)

type inspectCatalogueCmd struct {
	Dir     string `arg:"" type:"existingdir" help:"Folder of the bucket."`
	Check   bool   `help:"Read every live block and compare it with its commit record."`
	Repair  bool   `help:"Check, and then ask about each repair that is possible. What is damaged is set aside, nothing is deleted. A server may run meanwhile."`
	Yes     bool   `help:"With --repair: do all repairs without asking."`
	DataDir string `xor:"memory" type:"existingdir" placeholder:"DIR" help:"Data folder of a server that uses the bucket: the commit records that it remembers are compared, too. Default: the folder that the bucket lies in, if it is a data folder."`
	// NoDataDir is not the default of a missing DataDir: a rebuilt record next to a remembered one gives a block
	// two records.
	NoDataDir bool `xor:"memory" help:"With --repair: rebuild lost commit records although no data folder is known that may remember them."`
}

// rememberedDir is the folder of a data folder in which a server keeps copies of commit records.
const rememberedDir = "remembered"

// memoryOf opens the memory of a data folder; nil: there is none.
func memoryOf(dataDir string) (catalog.Reader, error) {
	dir := filepath.Join(dataDir, rememberedDir)
	if _, err := os.Stat(dir); err != nil {
		return nil, nil
	}
	return bucketfs.New(vfs.Default, dir)
}

// Run lists the contents of the bucket, reports what is wrong, and repairs it if asked.
func (i *inspectCatalogueCmd) Run(ctx context.Context, p *process) error {
	if (i.Yes || i.NoDataDir) && !i.Repair {
		return usageError{fmt.Errorf("--yes and --no-data-dir need --repair")}
	}
	b, err := bucketfs.New(vfs.Default, i.Dir) // opening changes nothing before the first put
	if err != nil {
		return err
	}
	o := compact.InspectOptions{Check: i.Check || i.Repair}
	dataDir := i.DataDir
	if dataDir == "" {
		dataDir = filepath.Dir(filepath.Clean(i.Dir))
	}
	if o.Memory, err = memoryOf(dataDir); err != nil {
		return err
	}
	if i.DataDir != "" && o.Memory == nil {
		return fmt.Errorf("%s has no folder %s, in which a server remembers commit records", i.DataDir, rememberedDir)
	}
	found, err := compact.Inspect(ctx, p.stdout, b, o)
	if err != nil {
		return err
	}
	wrong, withheld := found.Wrong, 0
	if i.Repair && wrong > 0 {
		var repairs []repair.Step
		repairs, withheld = found.Repairs(ctx, b, time.Now(), i.NoDataDir)
		done, err := repairAll(ctx, p, repairs, i.Yes)
		if err != nil {
			return err
		}
		if done > 0 {
			fmt.Fprintf(p.stdout, "\nafter %d repairs:\n\n", done)
			if found, err = compact.Inspect(ctx, p.stdout, b, o); err != nil {
				return err
			}
			wrong = found.Wrong
		}
	}
	if withheld > 0 {
		return fmt.Errorf("%d things are wrong in %s; %d more repairs are possible, but a server may remember the lost commit records: name its data folder with --data-dir, or add --no-data-dir if that is lost, too", wrong, i.Dir, withheld)
	}
	if wrong > 0 {
		return fmt.Errorf("%d things are wrong in %s", wrong, i.Dir)
	}
	return nil
}
