package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
)

// reopen starts an engine on a disk, and returns what it logged.
func (s *setup) reopen(t *testing.T, fs *vfs.MemFS) (*setup, *bytes.Buffer, error) {
	t.Helper()
	log := new(bytes.Buffer)
	r := &setup{mem: fs, now: s.now, o: s.o}
	r.o.FS, r.o.Logger = fs, slog.New(slog.NewTextHandler(log, nil))
	r.o.Now = func() int64 { return r.now }
	var err error
	if r.o.Bucket, err = bucketfs.New(fs, "/bucket"); err != nil {
		return nil, log, err
	}
	r.Engine, err = OpenEngine(context.Background(), r.o)
	return r, log, err
}

// journalFile returns the only segment of the journal.
func journalFile(t *testing.T, fs vfs.FS) string {
	t.Helper()
	files := filesUnder(t, fs, "/data/journal")
	if len(files) != 1 {
		t.Fatalf("segments: %v", files)
	}
	return files[0]
}

// firstRecord is the offset of a byte in the first record of a segment, after both headers.
const firstRecord = 44 + 24 + 3

// TestDamagedJournalThatPartsCover: a damaged record whose rows are in parts does not keep the engine from
// starting; one whose rows are nowhere else does.
func TestDamagedJournalThatPartsCover(t *testing.T) {
	s := newSetup(t, nil)
	must(t, s.push("a", up, s.now-2, 1))
	uncovered := s.mem.CrashClone(vfs.CrashCloneCfg{})
	must(t, s.Flush())
	must(t, s.push("a", up, s.now-1, 2))
	must(t, s.push("a", up, s.now, 3))
	disk := s.mem.CrashClone(vfs.CrashCloneCfg{})
	must(t, s.Close())

	damage(t, disk, journalFile(t, disk), firstRecord, false)
	r, log, err := s.reopen(t, disk)
	must(t, err)
	r.want(t, "a", "1 2 3")
	if !strings.Contains(log.String(), "nothing is lost") || !strings.Contains(log.String(), journalFile(t, s.mem)) {
		t.Errorf("the log does not tell of the damage: %s", log)
	}
	must(t, r.Close())

	s.o.FS = uncovered
	file := journalFile(t, uncovered)
	r, _, err = s.reopen(t, uncovered)
	must(t, err)
	must(t, r.push("a", up, s.now-1, 2)) // vouches for the record before it
	disk = uncovered.CrashClone(vfs.CrashCloneCfg{})
	must(t, r.Close())
	damage(t, disk, file, firstRecord, false)
	if _, _, err := s.reopen(t, disk); !errors.Is(err, model.ErrCorrupt) || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "--repair") {
		t.Errorf("rows that are nowhere else: %v", err)
	}
}
