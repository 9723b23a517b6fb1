package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/repair"
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

// TestLostDataIsTold: a query over the times of rows that were set aside has a warning, and so have metric
// metadata after METADATA was lost.
func TestLostDataIsTold(t *testing.T) {
	dir := t.TempDir()
	s := startServer(t, dir)
	if _, text := s.get(t, "/api/v1/metadata"); strings.Contains(text, "warnings") {
		t.Errorf("metadata of a new folder: %s", text)
	}
	must(t, s.stop())
	for _, name := range []string{"METADATA", "METADATA.copy"} {
		must(t, os.Remove(filepath.Join(dir, "head", name)))
	}
	at := time.Now().Add(-time.Hour)
	for _, signal := range []model.Signal{model.Metrics, model.Logs} {
		must(t, repair.Record(vfs.Default, dir, "head/00000007.part", repair.Note{Why: "a test", Lost: &repair.Lost{
			What: repair.Rows, Text: "rows of an hour ago", Signal: signal, Range: model.TimeRange{Min: at.UnixNano(), Max: at.UnixNano()},
		}}))
	}
	s = startServer(t, dir)
	for path, warns := range map[string]bool{
		"/api/v1/metadata": true,
		fmt.Sprintf("/api/v1/query_range?query=up&step=60&start=%d&end=%d", at.Unix()-60, at.Unix()+60):                            true,
		fmt.Sprintf("/api/v1/query_range?query=up&step=60&start=%d&end=%d", at.Unix()+600, at.Unix()+900):                          false,
		fmt.Sprintf("/api/v1/series?match[]=up&start=%d&end=%d", at.Unix()-60, at.Unix()+60):                                       true,
		fmt.Sprintf("/loki/api/v1/query_range?query={a=%%22b%%22}&start=%d&end=%d", at.UnixNano()-1e9, at.UnixNano()+1e9):          true,
		fmt.Sprintf("/loki/api/v1/query_range?query={a=%%22b%%22}&start=%d&end=%d", at.UnixNano()+1e9, at.UnixNano()+int64(2*1e9)): false,
	} {
		r, err := http.Get(s.url + path)
		must(t, err)
		header := r.Header.Get("Shale-Warning")
		status, text := finish(t, r, nil)
		if status != http.StatusOK || strings.Contains(text, `"warnings":["the result may lack`) != warns || (header != "") != warns {
			t.Errorf("%s: %d, header %q: %s", path, status, header, text)
		}
	}
	if _, text := s.get(t, "/metrics"); !strings.Contains(text, "\nshale_set_aside_files 3\n") {
		t.Error("the metric does not count 3 notes")
	}
	if log := s.log.String(); strings.Count(log, "queries lack data") != 3 {
		t.Errorf("log: %s", log)
	}
	must(t, s.stop())
}
