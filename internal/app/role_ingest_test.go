package app

import (
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/store/known"
)

// TestClean: folders of partitions that an earlier process has left go, and others stay.
func TestClean(t *testing.T) {
	fs := vfs.NewMem()
	r := &ingestRole{n: &node{fs: fs, dataDir: "/data"}}
	for range 2 { // the first time there is no folder
		if err := r.clean(); err != nil {
			t.Fatal(err)
		}
		if left, err := fs.List("/data/ingest"); err != nil || len(left) > 0 {
			t.Errorf("left are %v, %v", left, err)
		}
		for _, folder := range []string{"ingest/1-p0003", "ingest/2-p0000", "compact"} {
			if err := fs.MkdirAll("/data/"+folder, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := fs.Stat("/data/compact"); err != nil {
		t.Error(err)
	}
}

// TestWarnOfShares: an ingester warns once if so many partitions need more memory for their known sets than
// their shares of it, and names the memory that would do. What explains the memory names as many partitions.
func TestWarnOfShares(t *testing.T) {
	c := config.Config{Role: config.RoleIngest, MemoryBytes: 128 << 20}
	var log strings.Builder
	r := &ingestRole{n: &node{config: &c, log: slog.New(slog.NewTextHandler(&log, nil))}}
	most := memoryOf(&c).known / known.LeastBytes
	if r.warnOfShares(most); log.Len() > 0 {
		t.Errorf("with %d partitions:\n%s", most, log.String())
	}
	for range 3 {
		r.warnOfShares(most + 1)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings of %d partitions:\n%s", n, most+1, log.String())
	}
	c.MemoryBytes = leastMemory(&c, most+1)
	if enough := memoryOf(&c).known / known.LeastBytes; enough != most+1 {
		t.Errorf("%d bytes are enough for %d partitions, and needed for %d", c.MemoryBytes, enough, most+1)
	}
	// Each partition of a list has its share, and else shares are doubled.
	for list, want := range map[string]int64{"0-99": most + 1, "": 64} {
		var text strings.Builder
		c.Roles.Partitions = list
		if err := Explain(&text, &c, "a test"); err != nil || !regexp.MustCompile(fmt.Sprintf(`partitions +%d +at most`, want)).MatchString(text.String()) {
			t.Errorf("%v\n%s", err, text.String())
		}
	}
}
