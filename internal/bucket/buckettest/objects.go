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
	"testing"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// testAllowedNames puts objects whose names have each allowed character in each place, and long ones.
func testAllowedNames(t *testing.T, b bucket.Bucket) {
	names := []string{strings.Repeat("x", 255), strings.Repeat("0123456789/", 60) + "end"}
	for _, c := range "abyzABYZ0189-_.=+" {
		names = append(names, fmt.Sprintf("n/a%cb", c), fmt.Sprintf("n/b%c%cb", c, c))
		if c != '.' {
			names = append(names, fmt.Sprintf("n/%c/c", c), fmt.Sprintf("n/d%c", c))
		}
	}
	var listed []string
	for _, name := range names {
		put(t, b, name, name)
		listed = append(listed, fmt.Sprintf("%s %d", name, len(name)))
	}
	for _, name := range names {
		want(t, b, name, name)
		if got, err := b.GetRange(context.Background(), name, 1, 2); err != nil || string(got) != name[1:3] {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	slices.Sort(listed)
	if got := list(t, b, ""); !slices.Equal(got, listed) {
		t.Errorf("%v are there, not %v", got, listed)
	}
	for _, name := range names {
		if err := b.Delete(context.Background(), name); err != nil {
			t.Error(err)
		}
	}
	if got := list(t, b, ""); len(got) != 0 {
		t.Errorf("%v are left", got)
	}
}

// testSimilarNames changes an object next to others whose names begin like its own.
func testSimilarNames(t *testing.T, b bucket.Bucket) {
	for _, name := range []string{"a/b", "a/b-", "a/b.c", "a/bb", "a/B", "ab/b", "aa"} {
		put(t, b, name, name)
	}
	put(t, b, "a/b", "new")
	if created, err := b.PutIfAbsent(context.Background(), "a/b=", []byte("first")); err != nil || !created {
		t.Errorf("%v, %v", created, err)
	}
	if err := b.Delete(context.Background(), "a/b.d"); err != nil {
		t.Error(err)
	}
	if got := list(t, b, "a/b"); !slices.Equal(got, []string{"a/b 3", "a/b- 4", "a/b.c 5", "a/b= 5", "a/bb 4"}) {
		t.Errorf("%v are there", got)
	}
	want(t, b, "a/B", "a/B")
	if err := b.Delete(context.Background(), "a/b"); err != nil {
		t.Error(err)
	}
	want(t, b, "a/bb", "a/bb")
}

// testListMany lists more objects than stores return at once.
func testListMany(t *testing.T, b bucket.Bucket) {
	const n = 1234
	var wg sync.WaitGroup
	for worker := range 16 {
		wg.Go(func() {
			for i := worker; i < n; i += 16 {
				if err := b.Put(context.Background(), fmt.Sprintf("many/%04d", i), strings.NewReader("x"), 1); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	put(t, b, "manya", "")
	got := list(t, b, "many/")
	if len(got) != n || got[0] != "many/0000 1" || got[n-1] != fmt.Sprintf("many/%04d 1", n-1) || len(slices.Compact(got)) != n {
		t.Errorf("%d of %d objects are listed", len(got), n)
	}
	if got := list(t, b, "many/12"); len(got) != 34 {
		t.Errorf("%d of 34 objects are listed", len(got))
	}
}

// largeBytes is more than a store takes in one part.
const largeBytes = 17<<20 + 5

func largeObject() []byte {
	data := make([]byte, largeBytes)
	for i := range data {
		data[i] = byte(uint32(i) * 2654435761 >> 24)
	}
	return data
}

func testLargePut(t *testing.T, b bucket.Bucket) {
	data := largeObject()
	for _, size := range []int{largeBytes, 16 << 20, 8 << 20} {
		if err := b.Put(context.Background(), "large", struct{ io.Reader }{bytes.NewReader(data[:size])}, int64(size)); err != nil {
			t.Fatal(err)
		}
		got, err := b.Get(context.Background(), "large")
		if err != nil || !bytes.Equal(got, data[:size]) {
			t.Fatalf("%d bytes came back as %d, %v", size, len(got), err)
		}
		for _, off := range []int{0, 5<<20 - 1, 8<<20 - 5, size - 3} {
			got, err := b.GetRange(context.Background(), "large", int64(off), 3)
			if err != nil || !bytes.Equal(got, data[off:off+3]) {
				t.Errorf("3 bytes from %d: %x, %v; not %x", off, got, err, data[off:off+3])
			}
		}
	}
}

// testLargePutFails puts objects whose readers end in the second part, or go on after it.
func testLargePutFails(t *testing.T, b bucket.Bucket) {
	data := largeObject()
	put(t, b, "large", "old")
	for _, size := range []int64{largeBytes - 1, largeBytes + 1} {
		if err := b.Put(context.Background(), "large", bytes.NewReader(data), size); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%d bytes announced as %d: %v", largeBytes, size, err)
		}
	}
	if err := b.Put(context.Background(), "large", failingReader{bytes.NewReader(data)}, largeBytes+1); !errors.Is(err, errReader) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := io.MultiReader(bytes.NewReader(data[:17<<20]), cancelling{cancel}, bytes.NewReader(data[17<<20:]))
	if err := b.Put(ctx, "large", r, largeBytes); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	want(t, b, "large", "old")
	if got := list(t, b, ""); !slices.Equal(got, []string{"large 3"}) {
		t.Errorf("%v are there", got)
	}
}

// cancelling is an empty reader that cancels a context.
type cancelling struct{ cancel context.CancelFunc }

func (c cancelling) Read([]byte) (int, error) {
	c.cancel()
	return 0, io.EOF
}

func testEmptyObject(t *testing.T, b bucket.Bucket) {
	put(t, b, "empty", "")
	want(t, b, "empty", "")
	if got, err := b.GetRange(context.Background(), "empty", 0, 0); err != nil || len(got) != 0 {
		t.Errorf("%q, %v", got, err)
	}
	for _, r := range [][2]int64{{0, 1}, {1, 0}, {1, 1}} {
		if got, err := b.GetRange(context.Background(), "empty", r[0], r[1]); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%d bytes from %d: %q, %v", r[1], r[0], got, err)
		}
	}
	if created, err := b.PutIfAbsent(context.Background(), "empty", []byte("x")); err != nil || created {
		t.Errorf("%v, %v", created, err)
	}
	if created, err := b.PutIfAbsent(context.Background(), "empty/too", nil); err == nil && created {
		want(t, b, "empty/too", "")
	}
}
