package ssd

import (
	"context"
	"errors"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/prometheus/client_golang/prometheus"
)

// stuck is a disk that does not answer operations on some files until it is let go.
type stuck struct {
	hang  atomic.Pointer[hang]
	began chan struct{}
}

type hang struct {
	kind errorfs.OpKind
	file string // a part of its name
	end  chan struct{}
}

func (d *stuck) MaybeError(op errorfs.Op) error {
	if h := d.hang.Load(); h != nil && op.Kind == h.kind && strings.Contains(path.Base(op.Path), h.file) {
		select {
		case d.began <- struct{}{}:
		default:
		}
		<-h.end
	}
	return nil
}

func (d *stuck) String() string { return "stuck" }

// stop makes operations wait until release is called.
func (d *stuck) stop(kind errorfs.OpKind, file string) (release func()) {
	h := &hang{kind, file, make(chan struct{})}
	d.hang.Store(h)
	return func() {
		d.hang.Store(nil)
		close(h.end)
	}
}

func newStuck(t *testing.T, fs *vfs.MemFS, mutable bool) (*Store, *stuck) {
	d := &stuck{began: make(chan struct{}, 1)}
	o := testOptions(errorfs.Wrap(fs, d))
	o.Mutable, o.Boot, o.Now, o.Registerer = mutable, "boot", newClock().Now, prometheus.NewRegistry()
	s := newSmall(t, o, 8)
	s.patience = 200 * time.Millisecond
	return s, d
}

// returns fails the test if f waits.
func returns(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		f()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s waits for the disk", what)
	}
}

// A record whose key is removed while the disk holds it up is never returned, not by the next process either.
func TestHungWrite(t *testing.T) {
	fs := vfs.NewMem()
	s, d := newStuck(t, fs, true)
	k, other := itemKey(1), itemKey(2)
	s.Put(other, 1, []byte("kept"))
	s.drain()
	s.Put(k, 1, []byte("old"))
	release := d.stop(errorfs.OpFileWriteAt, "segment")
	written := make(chan struct{})
	go func() {
		s.drain()
		close(written)
	}()
	<-d.began
	returns(t, "Forget", func() {
		mark := s.Forget(k.Hash())
		if mark == 0 {
			t.Error("nothing is to be recorded of a record that is being written")
		}
		if err := s.Record(mark); err != nil {
			t.Error(err)
		}
		if mark := s.Forget(k.Hash()); mark != 0 {
			t.Error("a removal that is recorded is to be recorded")
		}
	})
	release()
	<-written
	for _, process := range []string{"this", "the next"} {
		if found := s.Get(context.Background(), k, by(1)); len(found.Value) > 0 {
			t.Errorf("%s process returns %q, which was removed", process, found.Value)
		}
		if found := s.Get(context.Background(), other, by(1)); string(found.Value) != "kept" {
			t.Errorf("%s process returns %q, expected the other value", process, found.Value)
		}
		m := &mutableRun{t: t, fs: fs, s: s, boot: "boot", clock: newClock()}
		m.kill()
		s = m.s
	}
}

// While the file of removals hangs, removals are noted without waiting, and are not called recorded. A key
// that the disk has nothing of does not wait at all.
func TestHungRemovals(t *testing.T) {
	s, d := newStuck(t, vfs.NewMem(), true)
	for n := range 2 {
		s.Put(itemKey(n), 1, []byte("value"))
	}
	s.drain()
	release := d.stop(errorfs.OpFileWriteAt, removedName)
	first := s.Forget(itemKey(0).Hash())
	recorded := make(chan error, 1)
	go func() { recorded <- s.Record(first) }()
	<-d.began
	returns(t, "a removal", func() {
		if err := s.Record(s.Forget(itemKey(2).Hash())); err != nil {
			t.Errorf("a key that the disk does not have: %v", err)
		}
		mark := s.Forget(itemKey(1).Hash())
		if err := s.Record(mark); !errors.Is(err, errHung) {
			t.Errorf("expected that the disk does not answer, got %v", err)
		}
		if again := s.Forget(itemKey(1).Hash()); again < mark {
			t.Errorf("a removal that is not recorded has mark %d, expected at least %d", again, mark)
		}
		if err := s.Clear(); !errors.Is(err, errHung) {
			t.Errorf("Clear: expected that the disk does not answer, got %v", err)
		}
		if s.Forget(itemKey(2).Hash()) == 0 {
			t.Error("a key need not wait for a removal of everything that is not recorded")
		}
	})
	release()
	if err := <-recorded; err != nil {
		t.Error(err)
	}
	if err := s.Record(s.Forget(itemKey(2).Hash())); err != nil {
		t.Error(err)
	}
	if s.Forget(itemKey(2).Hash()) != 0 {
		t.Error("all removals are recorded, and one is not known to be")
	}
}

// A tier whose disk does not answer takes itself out, so that others do not wait, and comes back.
func TestHungRead(t *testing.T) {
	s, d := newStuck(t, vfs.NewMem(), false)
	f := &faulty{Store: s, clock: newClock()}
	for n := range 80 {
		f.put(n)
	}
	s.done.Go(s.watch)
	defer func() {
		close(s.stop)
		s.done.Wait()
	}()
	release := d.stop(errorfs.OpFileReadAt, "segment")
	read := make(chan int)
	go func() { read <- f.found(t, 1) }()
	<-d.began
	for begun := time.Now(); f.causes() != "hung"; time.Sleep(time.Millisecond) {
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("out because of %q, expected a disk that hangs", f.causes())
		}
	}
	returns(t, "another read", func() { f.expect(t, "hung", false) })
	f.pass(tickEvery)
	f.expect(t, "hung", false) // the read is still there
	release()
	if n := <-read; n != 1 {
		t.Error("the read that waited found nothing")
	}
	// On a busy machine the tier may find its own reads too slow, and leave once more.
	for begun := time.Now(); ; {
		f.pass(tickEvery)
		if f.found(t, 80) > 0 && f.causes() == "" {
			return
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("out because of %q after the disk has answered", f.causes())
		}
	}
}

// A tier can be closed while its disk does not answer.
func TestHungClose(t *testing.T) {
	s, d := newStuck(t, vfs.NewMem(), true)
	release := d.stop(errorfs.OpFileWriteAt, "segment")
	s.done.Go(s.run)
	s.Put(itemKey(1), 1, []byte("value"))
	<-d.began
	returns(t, "Close", func() {
		if err := s.Close(); !errors.Is(err, errHung) {
			t.Errorf("expected that the disk does not answer, got %v", err)
		}
	})
	release()
	s.done.Wait()
}
