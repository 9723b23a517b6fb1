package parttest

import (
	"context"
	"testing"

	"github.com/shaledb/shale/internal/store/part/file"
)

// Must ends the test if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// KeptLists are pages that keep every list of a query.
type KeptLists struct {
	file.Pages
	Lists map[file.ListKey][]byte
}

// KeepLists returns pages that keep lists. The pages themselves may be nil if only the lists are read.
func KeepLists(pages file.Pages) *KeptLists {
	return &KeptLists{Pages: pages, Lists: map[file.ListKey][]byte{}}
}

// List implements file.Lists.
func (k *KeptLists) List(ctx context.Context, key file.ListKey, find func(context.Context) ([]byte, error)) ([]byte, error) {
	if l, ok := k.Lists[key]; ok {
		return l, nil
	}
	l, err := find(ctx)
	if err == nil {
		k.Lists[key] = l
	}
	return l, err
}

// Kept implements file.Lists.
func (k *KeptLists) Kept(key file.ListKey) ([]byte, bool) {
	l, ok := k.Lists[key]
	return l, ok
}
