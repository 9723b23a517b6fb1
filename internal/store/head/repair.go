package head

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/repair"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/head/metadata"
	"github.com/shaledb/shale/internal/store/part"
)

// Repairs returns the repairs of the folder dir of a head in the data folder root, and its manifest. The
// manifest is nil if it cannot be read, nor its copy; then there are no repairs.
func Repairs(ctx context.Context, fs vfs.FS, root, dir string) ([]repair.Step, *local.Manifest, error) {
	f := repairer{fs: fs, root: root, dir: dir, path: fs.PathJoin(root, dir)}
	m, _, err := local.ReadManifest(fs, f.path)
	if errors.Is(err, model.ErrCorrupt) {
		return nil, nil, nil
	}
	if err != nil || m == nil {
		return nil, nil, err
	}
	var steps []repair.Step
	if err := local.CheckBoth(fs, f.path, local.ManifestName); err != nil {
		steps = append(steps, f.smallFile(local.ManifestName, err, "", func() error { return m.Write(fs, f.path) }))
	}
	steps = append(steps, f.metadata()...)
	for _, info := range m.Parts {
		why := info.Group.Check()
		if why == nil {
			why = checkPart(ctx, fs, f.path, m.Seed, info)
		}
		switch {
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case why == nil:
		case errors.Is(why, model.ErrCorrupt):
			steps = append(steps, f.part(info, why))
		default:
			return nil, nil, why
		}
	}
	return steps, m, nil
}

type repairer struct {
	fs              vfs.FS
	root, dir, path string
}

// smallFile writes a file and its copy once more, after setting aside the damaged ones.
func (f repairer) smallFile(name string, why error, loss string, write func() error) repair.Step {
	action := "set the damaged file aside, and replace it by its copy"
	if loss != "" {
		action = "set the damaged file aside, and begin an empty one"
	}
	return repair.Step{Object: f.fs.PathJoin(f.dir, name), Why: why.Error(), Action: action, Loss: loss, Do: func(context.Context) error {
		n := repair.Note{Why: why.Error()}
		if loss != "" {
			n.Lost = &repair.Lost{What: repair.Metadata, Text: loss, Signal: model.Metrics}
		}
		set := repair.Keep
		if _, err := f.fs.Stat(f.fs.PathJoin(f.path, name)); errors.Is(err, os.ErrNotExist) {
			set = repair.Record
		}
		if err := set(f.fs, f.root, f.fs.PathJoin(f.dir, name), n); err != nil {
			return err
		}
		return write()
	}}
}

func (f repairer) metadata() []repair.Step {
	why := metadata.Check(f.fs, f.path)
	if why == nil {
		return nil
	}
	md := metadata.New(metadata.Limits{Families: math.MaxInt, TenantBytes: math.MaxInt64, Bytes: math.MaxInt64})
	loss := ""
	if _, err := md.Load(f.fs, f.path, time.Now().UnixNano()); err != nil {
		loss = lostMetadata
	}
	return []repair.Step{f.smallFile(metadata.FileName, why, loss, func() error { return md.Replace(f.fs, f.path) })}
}

// checkPart reads a whole part.
func checkPart(ctx context.Context, fs vfs.FS, dir string, seed model.KeySeed, info local.Info) error {
	p, err := local.Open(ctx, fs, dir, info, nil)
	if err != nil {
		return err
	}
	defer p.Unpin()
	err = part.Check(ctx, p.Reader)
	if got := p.Reader.Meta().Seed; err == nil && got != seed {
		err = fmt.Errorf("%w: expected key seed %016x, got %016x", model.ErrCorrupt, uint64(seed), uint64(got))
	}
	return p.WrapError(err)
}

// part sets a part aside, and takes it out of the manifest.
func (f repairer) part(info local.Info, why error) repair.Step {
	file := f.fs.PathJoin(f.dir, info.File)
	lost := repair.Lost{What: repair.Rows, Signal: info.Signal, Range: info.Range, Text: fmt.Sprintf("%s from %s to %s", info.Signal, stamp(info.Range.Min), stamp(info.Range.Max))}
	loss := fmt.Sprintf("%d %s of %d series, from %s to %s", info.Rows, english.PluralWord(int(info.Rows), "row", ""), info.Series, stamp(info.Range.Min), stamp(info.Range.Max))
	if info.Kind == local.Labels {
		lost = repair.Lost{What: repair.Labels, Signal: info.Signal, Text: fmt.Sprintf("series of %s whose labels have not been sent again", info.Signal)}
		loss = fmt.Sprintf("labels of %d series: queries find their rows once a sender has sent the labels again", info.Series)
	}
	return repair.Step{Object: file, Why: why.Error(), Action: "set the part aside, and take it out of the manifest", Loss: loss, Do: func(context.Context) error {
		m, _, err := local.ReadManifest(f.fs, f.path)
		if err != nil {
			return err
		}
		set := repair.Move
		if _, err := f.fs.Stat(f.fs.PathJoin(f.root, file)); errors.Is(err, os.ErrNotExist) {
			set = repair.Record
		}
		if err := set(f.fs, f.root, file, repair.Note{Why: why.Error(), Lost: &lost}); err != nil {
			return err
		}
		var kept []local.Info
		for _, p := range m.Parts {
			if p.File != info.File {
				kept = append(kept, p)
			}
		}
		m.Parts = kept
		return m.Write(f.fs, f.path)
	}}
}

func stamp(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339) }
