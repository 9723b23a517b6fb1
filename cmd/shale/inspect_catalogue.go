package main

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/store/compact"
)

type inspectCatalogueCmd struct {
	Dir   string `arg:"" type:"existingdir" help:"Folder of the bucket."`
	Check bool   `help:"Read every live block and compare it with its commit record."`
}

// Run lists the contents of the bucket and reports what is wrong.
func (i *inspectCatalogueCmd) Run(ctx context.Context, p *process) error {
	b, err := bucketfs.New(vfs.Default, i.Dir) // opening changes nothing before the first put
	if err != nil {
		return err
	}
	wrong, err := compact.Inspect(ctx, p.stdout, b, i.Check)
	if err == nil && wrong > 0 {
		err = fmt.Errorf("%d things are wrong in %s", wrong, i.Dir)
	}
	return err
}
