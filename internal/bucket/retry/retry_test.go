package retry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/buckettest"
	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
)

func memory(t testing.TB) bucket.Bucket {
	t.Helper()
	b, err := fs.New(vfs.NewMem(), "bucket")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSuite(t *testing.T) {
	buckettest.Run(t, func(t testing.TB) bucket.Bucket { return New(memory(t), nil) })
}

// store answers reads with a function.
type store struct {
	bucket.Bucket
	get func(ctx context.Context) ([]byte, error)
}

func (s store) GetRange(ctx context.Context, _ string, _, _ int64) ([]byte, error) { return s.get(ctx) }

// TestRepeats: one failure of any kind costs time, and no result.
func TestRepeats(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Fail, fault.LostAck, fault.Partial} {
		for _, op := range []fault.Op{fault.Put, fault.GetRange, fault.List, fault.Delete} {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				faulty := fault.New(memory(t))
				b := New(faulty, nil)
				for i := range 6 {
					if err := b.Put(ctx, fmt.Sprint("kept/", i), strings.NewReader("abc"), 3); err != nil {
						t.Fatal(err)
					}
				}
				faulty.Add(fault.Rule{Kind: kind, Op: op, Times: 2})
				if err := b.Put(ctx, "x", strings.NewReader("0123456789"), 10); err != nil {
					t.Fatal(err)
				}
				if got, err := b.GetRange(ctx, "x", 2, 3); err != nil || string(got) != "234" {
					t.Fatalf("%q, %v", got, err)
				}
				n := 0
				if err := b.List(ctx, "kept/", func(string, int64) error { n++; return nil }); err != nil || n != 6 {
					t.Fatalf("%d of 6 objects listed, %v", n, err)
				}
				if err := b.Delete(ctx, "x"); err != nil {
					t.Fatal(err)
				}
				if faulty.Hits() != 2 {
					t.Fatalf("%d faults", faulty.Hits())
				}
			})
		}
	}
}

// TestNotRepeated: what cannot or must not be sent a second time.
func TestNotRepeated(t *testing.T) {
	ctx := context.Background()
	faulty := fault.New(memory(t))
	b := New(faulty, nil)
	faulty.Add(fault.Rule{Kind: fault.LostAck, Op: fault.PutIfAbsent})
	if created, err := b.PutIfAbsent(ctx, "seed", []byte("x")); created || !errors.Is(err, model.ErrTransient) || faulty.Hits() != 1 {
		t.Errorf("%v, %v, %d tries", created, err, faulty.Hits())
	}
	faulty.Clear()
	faulty.Add(fault.Rule{Kind: fault.Fail, Op: fault.Put})
	if err := b.Put(ctx, "x", io.MultiReader(strings.NewReader("x")), 1); !errors.Is(err, model.ErrTransient) || faulty.Hits() != 2 {
		t.Errorf("a reader that cannot be read twice: %v, %d tries", err, faulty.Hits()-1)
	}
	tries := 0
	denied := New(store{get: func(context.Context) ([]byte, error) {
		tries++
		return nil, fmt.Errorf("%w: 403", bucket.ErrDenied)
	}}, nil)
	if _, err := denied.GetRange(ctx, "x", 0, 1); !errors.Is(err, bucket.ErrDenied) || tries != 1 {
		t.Errorf("%v, %d tries", err, tries)
	}
	mine := fmt.Errorf("%w: enough", model.ErrTransient)
	faulty.Clear()
	if err := b.Put(ctx, "y", strings.NewReader("y"), 1); err != nil {
		t.Fatal(err)
	}
	calls := 0
	if err := b.List(ctx, "y", func(string, int64) error { calls++; return mine }); !errors.Is(err, mine) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// TestBudget: however many requests fail, repetitions are a tenth of the requests, one a second, and those
// that were kept.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		b := New(store{get: func(context.Context) ([]byte, error) {
			sent.Add(1)
			time.Sleep(5 * time.Millisecond)
			return nil, fmt.Errorf("%w: 500", model.ErrTransient)
		}}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		const requests = 2000
		var wg sync.WaitGroup
		for range requests {
			wg.Go(func() {
				if _, err := b.GetRange(ctx, "x", 0, 1); !errors.Is(err, model.ErrTransient) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		repeated := float64(sent.Load() - requests)
		if most := budgetShare*requests + budgetPerSecond*time.Since(began).Seconds() + budgetBurst; repeated > most || repeated < 60 {
			t.Errorf("%v repetitions of %d requests in %s, at most %v are allowed", repeated, requests, time.Since(began), most)
		}
		t.Logf("%v repetitions of %d requests in %s", repeated, requests, time.Since(began))
	})
}

// TestDeadConnection: a read without a response is given up and repeated.
func TestDeadConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		b := New(store{get: func(ctx context.Context) ([]byte, error) {
			if tries++; tries == 1 {
				<-ctx.Done()
				return nil, fmt.Errorf("read: %w", ctx.Err())
			}
			return []byte("x"), nil
		}}, nil)
		began := time.Now()
		if got, err := b.GetRange(t.Context(), "x", 0, 1); err != nil || string(got) != "x" || time.Since(began) > 2*answerTime {
			t.Errorf("%q, %v after %s", got, err, time.Since(began))
		}
	})
}

// TestGivesUp: the error has the object, the cause and the number of tries, and comes within the deadline.
func TestGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(store{get: func(context.Context) ([]byte, error) {
			return nil, &bucket.ThrottledError{After: 3 * time.Second, Err: errors.New("blocks/x: 503 SlowDown")}
		}}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		began := time.Now()
		_, err := b.GetRange(ctx, "blocks/x", 0, 1)
		if !errors.Is(err, model.ErrTransient) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "SlowDown") {
			t.Error(err)
		}
		if took := time.Since(began); took > 20*time.Second || took < 5*time.Second {
			t.Errorf("gave up after %s", took)
		}
		if _, err := b.GetRange(t.Context(), "blocks/x", 0, 1); !errors.Is(err, model.ErrTransient) || !strings.Contains(err.Error(), "10 tries") {
			t.Error(err)
		}
	})
}
