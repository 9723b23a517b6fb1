package coalesce

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/buckettest"
	"github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
)

func TestSuite(t *testing.T) {
	for _, busy := range []bool{false, true} {
		t.Run(fmt.Sprint("busy=", busy), func(t *testing.T) {
			buckettest.Run(t, func(t testing.TB) bucket.Bucket {
				b, err := fs.New(vfs.NewMem(), "bucket")
				if err != nil {
					t.Fatal(err)
				}
				return New(b, Options{Gap: 64, Busy: func() bool { return busy }})
			})
		})
	}
}

// store is an object of a million bytes, each request to which takes 20 ms.
type store struct {
	bucket.Bucket
	requests, bytes, running atomic.Int64
	err                      error
}

func content(off, n int64) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte((off + int64(i)) * 7 % 251)
	}
	return data
}

func (s *store) GetRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	s.requests.Add(1)
	s.bytes.Add(n)
	s.running.Add(1)
	defer s.running.Add(-1)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(20 * time.Millisecond):
	}
	switch {
	case s.err != nil:
		return nil, s.err
	case off+n > 1_000_000:
		return nil, fmt.Errorf("%w: %s ends before %d", model.ErrInvalid, name, off+n)
	}
	return content(off, n), nil
}

// TestSame: reads of bytes that are on their way make no request, and each reader owns what it gets.
func TestSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		b := New(s, Options{Gap: 100, Busy: func() bool { return false }})
		var wg sync.WaitGroup
		for i := range int64(20) {
			wg.Go(func() {
				off, n := int64(0), int64(1000)
				if i > 0 {
					time.Sleep(time.Millisecond)
					off, n = 10*(i%5), 1000-50*(i%5)
				}
				got, err := b.GetRange(t.Context(), "x", off, n)
				if err != nil || !bytes.Equal(got, content(off, n)) {
					t.Errorf("%d bytes from %d: %v", n, off, err)
				}
				clear(got)
			})
		}
		wg.Wait()
		if n := s.requests.Load(); n != 1 {
			t.Errorf("%d requests", n)
		}
		if got, err := b.GetRange(t.Context(), "x", 5, 10); err != nil || !bytes.Equal(got, content(5, 10)) || s.requests.Load() != 1 {
			t.Errorf("a moment later: %v, %v, %d requests", got, err, s.requests.Load())
		}
		b.forget("x")
		if _, err := b.GetRange(t.Context(), "x", 5, 10); err != nil || s.requests.Load() != 2 {
			t.Errorf("after a change: %v, %d requests", err, s.requests.Load())
		}
		time.Sleep(keptTime + time.Millisecond)
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.flights) != 0 || len(b.kept) != 0 || b.bytes != 0 {
			t.Errorf("%d objects are in flight, %d responses of %d bytes are kept", len(b.flights), len(b.kept), b.bytes)
		}
	})
}

// TestWiden: of twenty callers that read the same pages, one after the other, and say that they will read the
// rest, the first fetches all for the others. There is a bound for what is fetched so at one time.
func TestWiden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		b := New(s, Options{Gap: 100, Busy: func() bool { return false }})
		near := model.WithNear(t.Context(), 10_000, 20_000)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for off := int64(10_000); off < 20_000; off += 1000 {
					if got, err := b.GetRange(near, "x", off, 1000); err != nil || !bytes.Equal(got, content(off, 1000)) {
						t.Errorf("1000 bytes from %d: %v", off, err)
					}
				}
			})
		}
		wg.Wait()
		if n, read := s.requests.Load(), s.bytes.Load(); n != 1 || read != 10_000 || b.wide != 0 {
			t.Errorf("%d requests of %d bytes, %d bytes count as under way", n, read, b.wide)
		}
		// While two tenants read, none is favoured. Ships and merges do not count.
		of := func(tenant string, class model.Class) context.Context {
			return model.WithCaller(near, model.Caller{Tenant: tenant, Class: class})
		}
		for i, read := range []struct {
			ctx   context.Context
			after time.Duration
			bytes int64
		}{
			{of("a", model.Dashboard), 0, 10_000},
			{of("c", model.Compaction), 0, 10_000},
			{of("a", model.Dashboard), 0, 10_000},
			{of("b", model.Dashboard), 0, 1000},
			{of("b", model.Dashboard), sharedFor - time.Second, 1000},
			{of("b", model.Dashboard), 2 * time.Second, 10_000},
			{of("a", model.Dashboard), time.Hour, 1000},
		} {
			time.Sleep(read.after)
			before := s.bytes.Load()
			if _, err := b.GetRange(read.ctx, fmt.Sprint(i), 12_000, 1000); err != nil || s.bytes.Load()-before != read.bytes {
				t.Errorf("read %d: %d bytes, expected %d: %v", i, s.bytes.Load()-before, read.bytes, err)
			}
		}
		time.Sleep(time.Hour)
		// What does not lie in the range is read as it is, and so is all without room.
		for _, odd := range []func(){
			func() { _, _ = b.GetRange(near, "y", 9_500, 1000) },
			func() {
				b.wide = keptBytes - 5000
				_, _ = b.GetRange(near, "z", 15_000, 1000)
				b.wide = 0
			},
			func() { _, _ = b.GetRange(model.WithNear(t.Context(), 0, maxBytes+1), "z", 1000, 1000) },
			func() { _, _ = New(s, Options{}).GetRange(near, "x", 11_000, 1000) },
		} {
			before := s.bytes.Load()
			if odd(); s.bytes.Load() != before+1000 || b.wide != 0 {
				t.Errorf("%d bytes, %d count as under way", s.bytes.Load()-before, b.wide)
			}
		}
	})
}

// TestLeaderLeaves: the reader that began a request gives up, and the others get their bytes. When all have
// given up, the request ends.
func TestLeaderLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		b := New(s, Options{Busy: func() bool { return false }})
		leader, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := b.GetRange(leader, "x", 0, 10); !errors.Is(err, context.Canceled) {
				t.Errorf("the leader: %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if got, err := b.GetRange(t.Context(), "x", 5, 5); err != nil || !bytes.Equal(got, content(5, 5)) {
				t.Errorf("the other: %v, %v", got, err)
			}
		})
		synctest.Wait()
		leave()
		wg.Wait()
		if s.requests.Load() != 1 {
			t.Errorf("%d requests", s.requests.Load())
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.Sleep(keptTime + time.Millisecond)
		wg.Go(func() { _, _ = b.GetRange(ctx, "x", 0, 10) })
		synctest.Wait()
		cancel()
		wg.Wait()
		synctest.Wait()
		if s.running.Load() != 0 || len(b.flights) != 0 {
			t.Error("a request goes on that nobody waits for")
		}
	})
}

// TestNear: while requests wait, reads that lie near each other are one request; a wrong one fails alone.
func TestNear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		b := New(s, Options{Gap: 1000, Busy: func() bool { return true }})
		var wg sync.WaitGroup
		read := func(off, n int64) {
			wg.Go(func() {
				got, err := b.GetRange(t.Context(), "x", off, n)
				if off+n > 1_000_000 {
					if !errors.Is(err, model.ErrInvalid) {
						t.Errorf("past the end: %v", err)
					}
				} else if err != nil || !bytes.Equal(got, content(off, n)) {
					t.Errorf("%d bytes from %d: %v", n, off, err)
				}
			})
		}
		began := time.Now()
		for i := range int64(100) { // 50 with gaps of 900 bytes, 50 with gaps of 1,900
			if i < 50 {
				read(1000*i, 100)
			} else {
				read(100_000+2000*i, 100)
			}
		}
		wg.Wait()
		if n, d := s.requests.Load(), time.Since(began); n != 51 || d != gatherTime+20*time.Millisecond {
			t.Errorf("%d requests in %s", n, d)
		}
		if n := s.bytes.Load(); n != 49*1000+100+50*100 {
			t.Errorf("%d bytes", n)
		}
		for i := range int64(10) {
			read(999_500+100*i, 100)
		}
		wg.Wait()
	})
}

// TestClasses: a dashboard does not wait for the request of a compaction.
func TestClasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		b := New(s, Options{Busy: func() bool { return false }})
		var wg sync.WaitGroup
		for _, class := range []model.Class{model.Compaction, model.Dashboard, model.Dashboard, model.Scan} {
			wg.Go(func() {
				if _, err := b.GetRange(model.WithCaller(t.Context(), model.Caller{Class: class}), "x", 0, 10); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if n := s.requests.Load(); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

// TestErrorsAreShared: readers of the same bytes get the same error, and no further request is made.
func TestErrorsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{err: fmt.Errorf("%w: 500", model.ErrTransient)}
		b := New(s, Options{Busy: func() bool { return false }})
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if _, err := b.GetRange(t.Context(), "x", 0, 10); !errors.Is(err, model.ErrTransient) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if s.requests.Load() != 1 {
			t.Errorf("%d requests", s.requests.Load())
		}
	})
}

// TestDeadlines: a reader is not failed by the deadline of the one that began the request.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		b := New(s, Options{Busy: func() bool { return false }})
		short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		long, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := b.GetRange(short, "x", 0, 10); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the leader: %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if got, err := b.GetRange(long, "x", 2, 5); err != nil || !bytes.Equal(got, content(2, 5)) {
				t.Errorf("the other: %v, %v", got, err)
			}
		})
		wg.Wait()
		if n := s.requests.Load(); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

// TestPanic: a panic of the bucket is an error of those who wait for it, and not the end of the process.
func TestPanic(t *testing.T) {
	s := &panicking{}
	b := New(s, Options{Gap: 100, Busy: func() bool { return false }})
	if _, err := b.GetRange(t.Context(), "o", 0, 10); err == nil || err.Error() != "unexpected error: a hostile response" {
		t.Error(err)
	}
}

type panicking struct{ bucket.Bucket }

func (*panicking) GetRange(context.Context, string, int64, int64) ([]byte, error) {
	panic("a hostile response")
}
