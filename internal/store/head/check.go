package head

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/head/metadata"
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
		errs = append(errs, info.Group.Check(), checkPart(ctx, fs, dir, m.Seed, info))
	}
	return errors.Join(errs...)
}
