package policy

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/shaledb/shale/internal/carbonconf"
	"github.com/shaledb/shale/internal/filewatch"
	"github.com/shaledb/shale/internal/model"
)

// Limits are the settings of this room.
type Limits struct {
	Schemas      string `name:"graphite.storage-schemas" default:"" placeholder:"FILE" help:"The file storage-schemas.conf of carbon: steps and retentions of Graphite names, applied when points are read. It is read again when it changes. Empty: every name has 60s:7d, as in carbon."`
	Aggregations string `name:"graphite.storage-aggregation" default:"" placeholder:"FILE" help:"The file storage-aggregation.conf of carbon: how coarse points of Graphite names are made of finer ones, applied when points are read. It is read again when it changes. Empty: every name has average and an xFilesFactor of 0.5, as in carbon."`
}

// Files are the policies of two files, which may change. Several goroutines may use them.
type Files struct {
	limits  Limits
	watcher *filewatch.Watcher
	now     atomic.Pointer[Policies]
}

// Open reads the files. An error has the file and the line.
func Open(l Limits) (*Files, error) {
	f := &Files{limits: l, watcher: filewatch.New(l.Schemas, l.Aggregations)}
	return f, f.load()
}

func (f *Files) load() error {
	schemas, err := readFile(f.limits.Schemas)
	if err != nil {
		return err
	}
	aggregations, err := readFile(f.limits.Aggregations)
	if err != nil {
		return err
	}
	p, err := Parse(schemas, aggregations)
	if err != nil {
		return err
	}
	// A file that is being written is empty for a moment. Schemas say how long points are needed.
	if old := f.now.Load(); old != nil && len(old.schemas) > 1 && len(p.schemas) == 1 {
		return fmt.Errorf("%w: %s has no section any more: restart to have the defaults for all names", model.ErrInvalid, f.limits.Schemas)
	}
	f.now.Store(p)
	return nil
}

func readFile(path string) (*carbonconf.File, error) {
	if path == "" {
		return nil, nil
	}
	text, err := carbonconf.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return carbonconf.Parse(path, text)
}

// Policies returns what is in force. A query takes it once.
func (f *Files) Policies() *Policies { return f.now.Load() }

// Watch logs what of the files has no effect, and reads them again when they change, until the context is
// done. Files with errors are logged, and change nothing.
func (f *Files) Watch(ctx context.Context, log *slog.Logger) {
	f.warn(log)
	carbonconf.Watch(ctx, f.watcher, log, func() error {
		err := f.load()
		if err == nil {
			f.warn(log)
		}
		return err
	})
}

func (f *Files) warn(log *slog.Logger) {
	for _, text := range f.now.Load().Warnings() {
		log.Warn("policies of Graphite: " + text)
	}
}
