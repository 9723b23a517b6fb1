package head

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/head/metadata"
	"github.com/shaledb/shale/internal/store/part"
)

// Check reads the whole folder of a head without changing it: the manifest, the metadata, and every part that
// the manifest names. It continues after an error and returns all errors.
func Check(ctx context.Context, fs vfs.FS, dir string) error {
	m, _, err := local.ReadManifest(fs, dir)
	if err != nil {
		return err
	}
	if m == nil {
		return fmt.Errorf("%w: %s has no %s", model.ErrCorrupt, dir, local.ManifestName)
	}
	errs := []error{local.CheckBoth(fs, dir, local.ManifestName), metadata.Check(fs, dir)}
	for _, info := range m.Parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		p, err := local.Open(ctx, fs, dir, info, nil)
		if err == nil {
			err = part.Check(ctx, p.Reader)
			if seed := p.Reader.Meta().Seed; err == nil && seed != m.Seed {
				err = fmt.Errorf("%w: expected key seed %016x, got %016x", model.ErrCorrupt, uint64(m.Seed), uint64(seed))
			}
			err = p.WrapError(err)
			p.Unpin()
		}
		errs = append(errs, info.Group.Check(), err)
	}
	return errors.Join(errs...)
}
