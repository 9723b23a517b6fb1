//go:build e2e

package objectstores

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/buckettest"
	"github.com/shaledb/shale/internal/bucket/check"
	"github.com/shaledb/shale/internal/bucket/location"
	"github.com/shaledb/shale/internal/bucket/provider"
)

var at = flag.String("at", "", "the URL of a bucket of another store, for TestContractAt: an empty prefix of it is used, and left")

func open(t testing.TB, l location.Location) bucket.Bucket {
	t.Helper()
	b, _, err := provider.Open(vfs.Default, l)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var prefixes atomic.Int64

// fresh returns an empty part of a bucket. A neighbour has objects whose names begin like those of the part.
func fresh(t testing.TB, l location.Location) bucket.Bucket {
	n := prefixes.Add(1)
	name := fmt.Sprintf("part-%d/of", n)
	l.Prefix = name + "-another"
	if _, err := open(t, l).PutIfAbsent(context.Background(), "a", []byte("of a neighbour")); err != nil {
		t.Fatal(err)
	}
	l.Prefix = name
	return open(t, l)
}

// TestContract runs the suite for buckets against each store.
func TestContract(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			s := Start(t, name)
			buckettest.Run(t, func(t testing.TB) bucket.Bucket { return fresh(t, s.Location) })
			if err := check.Run(t.Context(), open(t, s.At("checked")), check.Thorough, func(step check.Step) {
				t.Logf("%s: %v", step.Name, step.Took)
			}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestContractAt runs the suite against a store that is already running, such as a real one in a cloud.
func TestContractAt(t *testing.T) {
	if *at == "" {
		t.Skip("-at is not set")
	}
	l, err := location.Parse(*at)
	if err != nil {
		t.Fatal(err)
	}
	buckettest.Run(t, func(t testing.TB) bucket.Bucket { return fresh(t, l) })
	if err := check.Run(t.Context(), open(t, l), check.Thorough, nil); err != nil {
		t.Error(err)
	}
}

// TestMissingBucket tells a missing bucket, and wrong credentials, from a missing object.
func TestMissingBucket(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			s := Start(t, name)
			l := s.Location
			l.Name = "another-bucket"
			for what, l := range map[string]location.Location{"missing bucket": l, "no credentials": anonymous(s.Location)} {
				if what == "no credentials" && name == FakeGCS {
					continue // it lets everybody in
				}
				b := open(t, l)
				_, err := b.Get(t.Context(), "a")
				// The imitation does not say of a get what is missing; Google does.
				if name != FakeGCS && (!errors.Is(err, bucket.ErrDenied) || errors.Is(err, bucket.ErrNotFound)) {
					t.Errorf("%s: get: %v", what, err)
				}
				if _, err := b.PutIfAbsent(t.Context(), "a", nil); !errors.Is(err, bucket.ErrDenied) {
					t.Errorf("%s: put: %v", what, err)
				}
				if err := b.List(t.Context(), "", func(string, int64) error { return nil }); !errors.Is(err, bucket.ErrDenied) {
					t.Errorf("%s: list: %v", what, err)
				}
				t.Logf("%s: %v", what, err)
			}
		})
	}
}

func anonymous(l location.Location) location.Location {
	l.CredentialsFile, l.Anonymous = "", true
	return l
}
