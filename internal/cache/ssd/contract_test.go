package ssd

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/cache/cachetest"
)

func TestContract(t *testing.T) {
	cachetest.RunSecondary(t, func(t *testing.T) cache.Secondary {
		s, err := Open(testOptions(vfs.NewMem()))
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
