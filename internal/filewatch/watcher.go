package filewatch

import (
	"context"
	"os"
	"slices"
	"time"
)

// Watcher knows files as they were when it looked last. One goroutine uses it.
type Watcher struct {
	paths []string
	last  []os.FileInfo // nil: it could not be looked at
}

// New returns a watcher of files as they are now: read them after it. Empty paths are left out.
func New(paths ...string) *Watcher {
	w := &Watcher{paths: slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return p == "" })}
	w.last = w.look()
	return w
}

// Replace has it watch other files, as they are now; those that it watched before, as they were at the last
// look. Run may be running if the caller is what Run has called.
func (w *Watcher) Replace(paths ...string) {
	now := New(paths...)
	for i, path := range now.paths {
		if old := slices.Index(w.paths, path); old >= 0 {
			now.last[i] = w.last[old]
		}
	}
	*w = *now
}

// Paths returns the paths of the files.
func (w *Watcher) Paths() []string { return w.paths }

func (w *Watcher) look() []os.FileInfo {
	now := make([]os.FileInfo, len(w.paths))
	for i, path := range w.paths {
		if info, err := os.Stat(path); err == nil {
			now[i] = info
		}
	}
	return now
}

// same reports whether a file was neither written nor replaced. Size and time alone do not tell: a file may
// be replaced by one of the same size within the resolution of times, which is some milliseconds.
func same(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// Changed reports whether a file has changed since the last look.
func (w *Watcher) Changed() bool {
	now := w.look()
	changed := !slices.EqualFunc(w.last, now, same)
	w.last = now
	return changed
}

// settle is how long files must have stayed the same before they are read. A program that writes a file in
// place does so in pieces, and a piece may be a file that is right and says less.
const settle = 500 * time.Millisecond

// Run calls changed after each look that finds a change, and when hurry says so, until the context ends. It
// looks each interval. Nil as hurry: never. Files that are being written are left alone until they have
// stayed the same for half a second, or for an interval if that is shorter. If they change while changed
// reads them, it is called again.
func (w *Watcher) Run(ctx context.Context, interval time.Duration, hurry <-chan os.Signal, changed func()) {
	if len(w.paths) == 0 {
		return
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hurry:
			if w.Changed() && !w.settled(ctx, interval) {
				return
			}
		case <-tick.C:
			if !w.Changed() {
				continue
			}
			if !w.settled(ctx, interval) {
				return
			}
		}
		for changed(); w.Changed(); changed() {
			if !w.settled(ctx, interval) {
				return
			}
		}
	}
}

// settled waits until the files stay the same. It returns false if the context ends before.
func (w *Watcher) settled(ctx context.Context, interval time.Duration) bool {
	tick := time.NewTicker(min(settle, interval))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
			if !w.Changed() {
				return true
			}
		}
	}
}
