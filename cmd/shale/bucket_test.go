package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/move/bucketcopy"
	"github.com/shaledb/shale/internal/store/catalog"
)

// TestBucketCopy copies a bucket by the command line, twice, and checks the copy.
func TestBucketCopy(t *testing.T) {
	from, to := bucketToRepair(t), filepath.Join(t.TempDir(), "copy")
	code, out, errs := shale(t, nil, "bucket", "copy", from, to, "--dry-run", "--json")
	var plan bucketcopy.Plan
	if err := json.Unmarshal([]byte(out), &plan); err != nil || code != exitOK || plan.Blocks != 1 || plan.Bytes == 0 || plan.Requests.TargetPut != 4 || plan.Seconds <= 0 {
		t.Fatalf("exit %d: %v %+v %s", code, err, plan, errs)
	}
	if _, err := os.Stat(to); err == nil {
		t.Error("a dry run has written something")
	}
	if code, out, errs = shale(t, nil, "bucket", "copy", from, to, "--quiet"); code != exitOK || !strings.Contains(out, "commit records written") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	if code, out, errs = shale(t, nil, "inspect", "catalogue", to, "--check"); code != exitOK || !strings.Contains(out, "counts, in order") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	code, out, errs = shale(t, nil, "bucket", "copy", from, to, "--json", "--quiet")
	var report bucketcopy.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != exitOK || report.Blocks != 0 || report.Present != 1 || report.Records != 0 {
		t.Errorf("exit %d: %v %+v %s", code, err, report, errs)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no source":      {[]string{filepath.Join(t.TempDir(), "none"), to}, "the source has no seed"},
		"the same":       {[]string{from, from}, "are the same folder"},
		"another bucket": {[]string{bucketOther(t), to}, "the target is another bucket"},
		"a URL":          {[]string{"ftp://host/bucket", to}, "expected a folder"},
		"nothing":        {[]string{from}, "<to>"},
		"no one at work": {[]string{from, to, "--concurrency", "0"}, "at least 1"},
	} {
		if code, _, errs := shale(t, nil, append([]string{"bucket", "copy"}, c.args...)...); code == exitOK || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit %d: %s, expected %q", name, code, errs, c.want)
		}
	}
}

// bucketOther makes an empty bucket with another seed.
func bucketOther(t *testing.T) string {
	dir := t.TempDir()
	b, err := bucketfs.New(vfs.Default, dir)
	if err == nil {
		_, err = catalog.EnsureSeed(t.Context(), b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
