package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// changingBucket changes after each listing.
type changingBucket struct {
	Reader
	listings int
	after    func(listing int)
}

func (b *changingBucket) List(ctx context.Context, prefix string, fn func(name string, size int64) error) error {
	err := b.Reader.List(ctx, prefix, fn)
	b.listings++
	b.after(b.listings)
	return err
}

// TestReadStoredIsOneMoment: records that appear and disappear between listings are either all seen or none.
func TestReadStoredIsOneMoment(t *testing.T) {
	b := memory(t)
	record := func(id string) {
		data, err := (&commit{id: id, committed: 1, replaces: []string{"gone"}}).encode()
		if err == nil {
			err = b.Put(t.Context(), recordName(id), strings.NewReader(string(data)), int64(len(data)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	record("merged-0")
	changing := &changingBucket{Reader: b, after: func(n int) {
		switch n {
		case 1:
			record("merged-1")
		case 2:
			record("merged-2")
			if err := b.Delete(t.Context(), recordName("merged-0")); err != nil {
				t.Fatal(err)
			}
		}
	}}
	got, err := ReadStored(t.Context(), changing)
	var ids []string
	for i := range got {
		ids = append(ids, got[i].ID)
	}
	if err != nil || !slices.Equal(ids, []string{"merged-1", "merged-2"}) || changing.listings != 4 {
		t.Errorf("%v after %d listings, %v", ids, changing.listings, err)
	}

	changing.after = func(n int) { record(fmt.Sprint("merged-x", n)) }
	if _, err := ReadStored(t.Context(), changing); !errors.Is(err, model.ErrTransient) {
		t.Errorf("a bucket that never rests: %v", err)
	}
}
