package filewatch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWatcherNoticesChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.conf")
	w := New("", path)
	if w.Changed() {
		t.Error("a missing file has changed")
	}
	if err := os.WriteFile(path, []byte("[a]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if !w.Changed() || w.Changed() {
		t.Error("a new file is noticed not once")
	}
	if err := os.Chtimes(path, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if !w.Changed() {
		t.Error("a new time is not noticed")
	}
	// Another file with the same size and time.
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	next := path + ".next"
	if err := errors.Join(os.WriteFile(next, []byte("[b]\n"), 0o644), os.Chtimes(next, time.Time{}, info.ModTime()), os.Rename(next, path)); err != nil {
		t.Fatal(err)
	}
	if !w.Changed() || w.Changed() {
		t.Error("a replaced file is noticed not once")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if !w.Changed() {
		t.Error("a removed file is not noticed")
	}
}

// TestRun: a change and a hurry each call once, until the context ends.
func TestRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.conf")
	w := New(path)
	ctx, stop := context.WithCancel(context.Background())
	hurry, calls, ended := make(chan os.Signal), make(chan bool), make(chan bool)
	go func() {
		w.Run(ctx, time.Millisecond, hurry, func() { calls <- true })
		close(ended)
	}()
	next := path + ".next" // a file that is written in place changes twice
	if err := errors.Join(os.WriteFile(next, []byte("[a]\n"), 0o644), os.Rename(next, path)); err != nil {
		t.Fatal(err)
	}
	<-calls
	hurry <- os.Interrupt
	<-calls
	stop()
	<-ended
	New("").Run(context.Background(), time.Millisecond, nil, nil) // nothing to watch
}
