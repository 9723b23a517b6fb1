package buckettest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// Run runs the suite. newBucket returns an empty bucket each time.
func Run(t *testing.T, newBucket func(t testing.TB) bucket.Bucket) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, b bucket.Bucket)
	}{
		{"PutGet", testPutGet},
		{"PutReplaces", testPutReplaces},
		{"PutSizes", testPutSizes},
		{"PutFails", testPutFails},
		{"PutIfAbsent", testPutIfAbsent},
		{"PutIfAbsentRace", testPutIfAbsentRace},
		{"GetRange", testGetRange},
		{"NotFound", testNotFound},
		{"List", testList},
		{"ListEnds", testListEnds},
		{"Delete", testDelete},
		{"Names", testNames},
		{"Cancelled", testCancelled},
		{"WholeOrNot", testWholeOrNot},
		{"AllowedNames", testAllowedNames},
		{"SimilarNames", testSimilarNames},
		{"ListMany", testListMany},
		{"LargePut", testLargePut},
		{"LargePutFails", testLargePutFails},
		{"EmptyObject", testEmptyObject},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newBucket(t)) })
	}
}

func put(t testing.TB, b bucket.Bucket, name, data string) {
	t.Helper()
	if err := b.Put(context.Background(), name, strings.NewReader(data), int64(len(data))); err != nil {
		t.Fatal(err)
	}
}

func want(t testing.TB, b bucket.Bucket, name, data string) {
	t.Helper()
	if got, err := b.Get(context.Background(), name); err != nil || string(got) != data {
		t.Fatalf("%s: %.40q, %v; not %.40q", name, got, err, data)
	}
}

func list(t testing.TB, b bucket.Bucket, prefix string) []string {
	t.Helper()
	names := []string{}
	if err := b.List(context.Background(), prefix, func(name string, size int64) error {
		names = append(names, fmt.Sprintf("%s %d", name, size))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func testPutGet(t *testing.T, b bucket.Bucket) {
	big := strings.Repeat("0123456789abcdef", 200_000)
	for name, data := range map[string]string{"a": "1", "b/c/d": "\x00\xff", "b/c/empty": "", "b/e-f_g.h=i+j": "x", "big": big} {
		put(t, b, name, data)
		want(t, b, name, data)
	}
	got, err := b.Get(context.Background(), "a")
	if err != nil {
		t.Fatal(err)
	}
	got[0] = 'x' // the caller owns the bytes
	want(t, b, "a", "1")
}

func testPutReplaces(t *testing.T, b bucket.Bucket) {
	put(t, b, "a/b", "a long first version")
	put(t, b, "a/b", "second")
	put(t, b, "a/b", "second")
	want(t, b, "a/b", "second")
}

func testPutSizes(t *testing.T, b bucket.Bucket) {
	put(t, b, "kept", "old")
	for _, size := range []int64{-1, 0, 2, 4, 1 << 40} {
		err := b.Put(context.Background(), "kept", strings.NewReader("new"), size)
		if !errors.Is(err, model.ErrInvalid) {
			t.Errorf("3 bytes announced as %d: %v", size, err)
		}
		if err := b.Put(context.Background(), "fresh", strings.NewReader("new"), size); err == nil {
			t.Errorf("3 bytes announced as %d were taken", size)
		}
	}
	want(t, b, "kept", "old")
	if got := list(t, b, ""); !slices.Equal(got, []string{"kept 3"}) {
		t.Errorf("%v are there", got)
	}
}

var errReader = errors.New("the reader failed")

type failingReader struct{ r io.Reader }

func (f failingReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if errors.Is(err, io.EOF) {
		err = errReader
	}
	return n, err
}

func testPutFails(t *testing.T, b bucket.Bucket) {
	err := b.Put(context.Background(), "a", failingReader{strings.NewReader("half")}, 8)
	if !errors.Is(err, errReader) {
		t.Error(err)
	}
	if got := list(t, b, ""); len(got) != 0 {
		t.Errorf("%v are there", got)
	}
}

func testPutIfAbsent(t *testing.T, b bucket.Bucket) {
	for i, data := range []string{"first", "second"} {
		created, err := b.PutIfAbsent(context.Background(), "x/seed", []byte(data))
		if err != nil || created != (i == 0) {
			t.Fatalf("try %d: %v, %v", i, created, err)
		}
		want(t, b, "x/seed", "first")
	}
	put(t, b, "x/seed", "third")
	want(t, b, "x/seed", "third")
}

func testPutIfAbsentRace(t *testing.T, b bucket.Bucket) {
	for round := range 10 {
		name := fmt.Sprintf("seeds/%d", round)
		var wg sync.WaitGroup
		var winner atomic.Int32
		for i := range int32(8) {
			wg.Go(func() {
				created, err := b.PutIfAbsent(context.Background(), name, []byte{byte(i + 1)})
				// A store may refuse to decide between two attempts.
				for tries := 0; tries < 10 && errors.Is(err, model.ErrTransient); tries++ {
					created, err = b.PutIfAbsent(context.Background(), name, []byte{byte(i + 1)})
				}
				if err != nil {
					t.Error(err)
				}
				if created && !winner.CompareAndSwap(0, i+1) {
					t.Error("two are told that theirs is the one")
				}
			})
		}
		wg.Wait()
		want(t, b, name, string([]byte{byte(winner.Load())}))
	}
}

func testGetRange(t *testing.T, b bucket.Bucket) {
	const data = "0123456789"
	put(t, b, "a", data)
	for off := int64(0); off <= 10; off++ {
		for n := int64(0); off+n <= 10; n++ {
			got, err := b.GetRange(context.Background(), "a", off, n)
			if err != nil || string(got) != data[off:off+n] {
				t.Fatalf("%d bytes from %d: %q, %v", n, off, got, err)
			}
		}
	}
	for _, r := range [][2]int64{{0, 11}, {10, 1}, {11, 0}, {-1, 1}, {0, -1}, {1 << 62, 1 << 62}, {5, 1<<63 - 1}} {
		if got, err := b.GetRange(context.Background(), "a", r[0], r[1]); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%d bytes from %d: %q, %v", r[1], r[0], got, err)
		}
	}
}

func testNotFound(t *testing.T, b bucket.Bucket) {
	put(t, b, "a/b", "x")
	for _, name := range []string{"c", "a", "a/c", "c/d"} {
		if _, err := b.Get(context.Background(), name); !errors.Is(err, bucket.ErrNotFound) {
			t.Errorf("get %s: %v", name, err)
		}
		if _, err := b.GetRange(context.Background(), name, 0, 0); !errors.Is(err, bucket.ErrNotFound) {
			t.Errorf("range of %s: %v", name, err)
		}
	}
}

func testList(t *testing.T, b bucket.Bucket) {
	if got := list(t, b, ""); len(got) != 0 {
		t.Fatalf("a new bucket has %v", got)
	}
	for i, name := range []string{"a", "ab", "b/a", "b/ab/c", "b/b", "bc"} {
		put(t, b, name, strings.Repeat("x", i))
	}
	for prefix, names := range map[string][]string{
		"":       {"a 0", "ab 1", "b/a 2", "b/ab/c 3", "b/b 4", "bc 5"},
		"a":      {"a 0", "ab 1"},
		"ab":     {"ab 1"},
		"b":      {"b/a 2", "b/ab/c 3", "b/b 4", "bc 5"},
		"b/":     {"b/a 2", "b/ab/c 3", "b/b 4"},
		"b/a":    {"b/a 2", "b/ab/c 3"},
		"b/ab/":  {"b/ab/c 3"},
		"b/ab/c": {"b/ab/c 3"},
		"c":      {},
		"c/d/e":  {},
		"b/c/":   {},
	} {
		if got := list(t, b, prefix); !slices.Equal(got, names) {
			t.Errorf("prefix %q: %v, not %v", prefix, got, names)
		}
	}
}

func testListEnds(t *testing.T, b bucket.Bucket) {
	for i := range 5 {
		put(t, b, fmt.Sprintf("a/%d", i), "x")
	}
	stop, calls := errors.New("enough"), 0
	err := b.List(context.Background(), "a/", func(string, int64) error {
		calls++
		return stop
	})
	if !errors.Is(err, stop) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func testDelete(t *testing.T, b bucket.Bucket) {
	put(t, b, "a/b", "x")
	put(t, b, "a/c", "x")
	for _, name := range []string{"a/b", "a/b", "none", "none/at/all", "a"} {
		if err := b.Delete(context.Background(), name); err != nil {
			t.Errorf("delete %s: %v", name, err)
		}
	}
	if got := list(t, b, ""); !slices.Equal(got, []string{"a/c 1"}) {
		t.Errorf("%v are there", got)
	}
	put(t, b, "a/b", "again")
	want(t, b, "a/b", "again")
}

func testNames(t *testing.T, b bucket.Bucket) {
	ctx := context.Background()
	for _, name := range []string{"", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/.b", "a.", "a./b", "a b", "a\\b", "a\x00", "ä",
		strings.Repeat("x", 256), strings.Repeat("x/", 600) + "x"} {
		errs := []error{b.Put(ctx, name, strings.NewReader(""), 0), b.Delete(ctx, name)}
		_, err := b.PutIfAbsent(ctx, name, nil)
		errs = append(errs, err)
		_, err = b.Get(ctx, name)
		errs = append(errs, err)
		_, err = b.GetRange(ctx, name, 0, 0)
		for i, err := range append(errs, err) {
			if !errors.Is(err, model.ErrInvalid) {
				t.Errorf("%.20q, call %d: %v", name, i, err)
			}
		}
	}
	if got := list(t, b, ""); len(got) != 0 {
		t.Errorf("%v are there", got)
	}
}

func testCancelled(t *testing.T, b bucket.Bucket) {
	put(t, b, "a", "x")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.Put(ctx, "b", strings.NewReader("x"), 1); !errors.Is(err, context.Canceled) {
		t.Errorf("put: %v", err)
	}
	if _, err := b.Get(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("get: %v", err)
	}
	if err := b.List(ctx, "", func(string, int64) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("list: %v", err)
	}
	if err := b.Delete(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("delete: %v", err)
	}
	want(t, b, "a", "x")
}

// testWholeOrNot reads an object while it is replaced.
func testWholeOrNot(t *testing.T, b bucket.Bucket) {
	version := func(i byte) []byte { return bytes.Repeat([]byte{i}, 10_000+int(i)) }
	put(t, b, "a", string(version(0)))
	var wg sync.WaitGroup
	var done atomic.Bool
	for range 2 {
		wg.Go(func() {
			for !done.Load() {
				got, err := b.Get(context.Background(), "a")
				if err != nil || len(got) == 0 || !bytes.Equal(got, version(got[0])) {
					t.Errorf("%d bytes, %v", len(got), err)
					return
				}
			}
		})
	}
	for i := range byte(30) {
		put(t, b, "a", string(version(i)))
	}
	done.Store(true)
	wg.Wait()
}
