package carbonconf

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"
)

// watchEvery is how often files are looked at. Carbon does so every 10 s (rules) or 60 s (schemas).
const watchEvery = 10 * time.Second

// Watcher notices when files change, appear or vanish. One goroutine uses it.
type Watcher struct {
	paths []string
	last  []stamp
}

// stamp tells versions of a file apart without reading it.
type stamp struct {
	size, changed int64
	missing       bool
}

// NewWatcher returns a watcher of files as they are now: read them after it. Empty paths are left out.
func NewWatcher(paths ...string) *Watcher {
	w := &Watcher{paths: slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return p == "" })}
	w.last = w.stamps()
	return w
}

func (w *Watcher) stamps() []stamp {
	s := make([]stamp, len(w.paths))
	for i, path := range w.paths {
		if info, err := os.Stat(path); err == nil {
			s[i] = stamp{size: info.Size(), changed: info.ModTime().UnixNano()}
		} else {
			s[i] = stamp{missing: true}
		}
	}
	return s
}

// Changed reports whether a file has changed since the last call.
func (w *Watcher) Changed() bool {
	now := w.stamps()
	changed := !slices.Equal(w.last, now)
	w.last = now
	return changed
}

// Run calls load each time that a file has changed, until the context is done. If load fails, the log says
// why: what was loaded before has to stay in force.
func (w *Watcher) Run(ctx context.Context, log *slog.Logger, load func() error) {
	if len(w.paths) == 0 {
		return
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !w.Changed() {
			continue
		}
		if err := load(); err != nil {
			log.Error("a changed file is not in force; what was read before still is", "err", err)
			continue
		}
		log.Info("changed files are in force", "files", strings.Join(w.paths, " "))
	}
}
