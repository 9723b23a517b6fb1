package write

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
)

// keeper is a Metadata that remembers its calls.
type keeper struct {
	mu    sync.Mutex
	calls []string
	err   error
}

func (k *keeper) PutMetadata(tenant, family string, m model.Metadata) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls = append(k.calls, fmt.Sprintf("%s %s: %s, %s, %s", tenant, family, m.Type, m.Help, m.Unit))
	return k.err
}

func newMetadataPath(k *keeper, clock *int64) *Path {
	return New(Options{Seed: seed, Metadata: k, Limits: Limits{MaxValueBytes: 100}, Now: func() int64 { return *clock }})
}

// TestMetadataIsToldWhenItChanges: metadata is passed on when it changes, after an hour, and at no
// other time.
func TestMetadataIsToldWhenItChanges(t *testing.T) {
	k, clock := &keeper{}, now
	p := newMetadataPath(k, &clock)
	tell := func(tenant, family, typ, help, unit string) {
		p.Metadata(tenant, []byte(family), typ, []byte(help), []byte(unit))
	}
	for range 3 {
		tell("t", "up", "gauge", "Is it up?", "")
		tell("t", "down", "gauge", "Is it up?", "")
		tell("u", "up", "gauge", "Is it up?", "")
	}
	for range 2 {
		tell("t", "up", "gauge", "Is it", " up?") // the same text, cut elsewhere
		tell("t", "up", "counter", "Is it", " up?")
		tell("t", "up", "gauge", "Is it up?", "") // as before the change
	}
	tell("t", "", "gauge", "nameless", "")
	tell("t", strings.Repeat("x", 101), "gauge", "long", "")
	tell("t", "long", "gauge", strings.Repeat("x", 101), "")
	tell("t", "long", "gauge", "", strings.Repeat("x", 101))
	tell("t", "bad", "gauge", "\xff", "")
	clock += int64(metadataRepeat)
	for range 3 {
		tell("t", "up", "gauge", "Is it up?", "")
	}
	want := []string{"t up: gauge, Is it up?, ", "t down: gauge, Is it up?, ", "u up: gauge, Is it up?, "}
	for range 2 {
		want = append(want, "t up: gauge, Is it,  up?", "t up: counter, Is it,  up?", "t up: gauge, Is it up?, ")
	}
	want = append(want, "t up: gauge, Is it up?, ")
	if diff := cmp.Diff(want, k.calls); diff != "" {
		t.Fatal(diff)
	}
}

// TestMetadataThatIsRefused is offered again at once only if that may help.
func TestMetadataThatIsRefused(t *testing.T) {
	for _, c := range []struct {
		err   error
		calls int
	}{
		{fmt.Errorf("%w: disk", model.ErrTransient), 3},
		{&model.LimitError{Limit: "limits.metadata-families", Text: "full"}, 1},
		{fmt.Errorf("%w: too long", model.ErrInvalid), 1},
	} {
		k, clock := &keeper{err: c.err}, now
		p := newMetadataPath(k, &clock)
		for range 3 {
			p.Metadata("t", []byte("up"), "gauge", nil, nil)
		}
		if len(k.calls) != c.calls {
			t.Errorf("%v: %d calls", c.err, len(k.calls))
		}
	}
}

func TestMetadataAllocatesNothingWhenKnown(t *testing.T) {
	k, clock := &keeper{}, now
	p := newMetadataPath(k, &clock)
	family, help, unit := []byte("requests_total"), []byte("How many requests there were."), []byte("1")
	alloctest.AtMost(t, 0, 100, func() { p.Metadata("t", family, "counter", help, unit) })
	if len(k.calls) != 1 {
		t.Errorf("%d calls", len(k.calls))
	}
}

// TestNothingAfterClose: close waits for running calls and refuses later ones, and then no call touches
// the store.
func TestNothingAfterClose(t *testing.T) {
	for range 20 {
		s := &guarded{}
		p := New(Options{Seed: seed, Head: s, Journal: s, Metadata: s, Now: func() int64 { return now }})
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 50 {
					_, err := p.Push(t.Context(), send(p, wire{{"__name__", fmt.Sprint(g, i)}}, 0))
					var r *Refused
					if err != nil && (!errors.Is(err, model.ErrClosed) || !errors.As(err, &r) || r.Status != 503 || errors.Is(err, model.ErrTransient)) {
						t.Errorf("%v", err)
					}
					p.Metadata("t", fmt.Append(nil, g, i), "gauge", nil, nil)
				}
			})
		}
		wg.Go(func() {
			p.Close()
			s.close()
			p.Close()
		})
		wg.Wait()
		if s.late.Load() {
			t.Fatal("the store was used after it was closed")
		}
		for _, f := range []func() error{
			func() error { _, err := p.Push(t.Context(), send(p, wire{{"__name__", "x"}}, 0)); return err },
			func() error { _, err := p.Admit(t.Context(), "t", 1); return err },
			func() error { _, err := p.AdmitWait(t.Context(), "t", 1); return err },
		} {
			if err := f(); !errors.Is(err, model.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		}
	}
}
