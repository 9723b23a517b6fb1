package filewatch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
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

// TestRunWaitsForTheWriter: a file that is written in pieces is read whole, also if it changes while it is
// read, and when someone is in a hurry.
func TestRunWaitsForTheWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.conf")
	w := New(path)
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Error(err)
		}
	}
	whole := make(chan bool, 1)
	hurry := make(chan os.Signal, 1)
	// The interval is longer than the pauses of the writer, on a machine that does not stand still.
	done.Go(func() {
		w.Run(ctx, 300*time.Millisecond, hurry, func() {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Error(err)
			}
			switch string(text) {
			case "whole":
				write("changed while it was read")
			case "changed while it was read":
				whole <- true
			}
		})
	})
	for i := range 20 {
		write("piece"[:1+i%5])
		if i == 10 {
			hurry <- os.Interrupt
		}
		time.Sleep(5 * time.Millisecond)
	}
	write("whole")
	select {
	case <-whole:
	case <-time.After(time.Minute):
		t.Error("the end of the file was not read")
	}
	stop()
	done.Wait()
}

// TestSettled: while looks find changes, the files are not settled.
func TestSettled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.conf")
	w := New(path)
	if !w.settled(t.Context(), time.Millisecond) {
		t.Error("files that stay the same are not settled")
	}
	if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	ended, stop := context.WithCancel(context.Background())
	stop()
	if w.settled(ended, time.Hour) {
		t.Error("files are settled though nobody looked again")
	}
}
