package segment

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/shaledb/shale/internal/model"
)

func folder(fs vfs.FS) Folder { return Folder{FS: fs, Dir: "/log", Format: "test 1"} }

func open(t *testing.T, f Folder, want ...uint64) {
	t.Helper()
	got, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files: -want +got\n%s", diff)
	}
}

func read(t *testing.T, f Folder, number uint64) (records []string, cut error) {
	t.Helper()
	cut, err := f.Read(number, func(r []byte) error { records = append(records, string(r)); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return records, cut
}

func TestFilesHaveWhatWasAppended(t *testing.T) {
	f := folder(vfs.NewMem())
	open(t, f)
	long := strings.Repeat("x", 100_000)
	w, err := f.Create(7, []byte("first"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Append([]byte(long)), w.Append(nil), w.Sync(), w.Close()); err != nil {
		t.Fatal(err)
	}
	w, err = f.Create(1_234_567)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, f, 7, 1_234_567)
	records, cut := read(t, f, 7)
	if diff := cmp.Diff([]string{"first", long, ""}, records); diff != "" || cut != nil {
		t.Errorf("cut %v; -want +got\n%s", cut, diff)
	}
	if size, err := f.Size(7); err != nil || size < 100_000 {
		t.Errorf("the size is %d, error %v", size, err)
	}
	if err := f.Remove(7); err != nil {
		t.Fatal(err)
	}
	open(t, f, 1_234_567)
}

// TestPowerCut cuts the power after each of many appends. What was synced is there, and what is there is the
// beginning of what was appended.
func TestPowerCut(t *testing.T) {
	fs := vfs.NewCrashableMem()
	f := folder(fs)
	open(t, f)
	w, err := f.Create(1, []byte("0"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	synced, rng := 1, rand.New(rand.NewPCG(1, 1))
	for i := 1; i < 100; i++ {
		if err := w.Append(fmt.Append(nil, i, strings.Repeat("y", i*53))); err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 {
			if err := w.Sync(); err != nil {
				t.Fatal(err)
			}
			synced = i + 1
		}
		after := folder(fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: i % 101, RNG: rng}))
		open(t, after, 1)
		records, _ := read(t, after, 1)
		if len(records) < synced || len(records) > i+1 {
			t.Fatalf("append %d: %d records are left, and %d were synced", i, len(records), synced)
		}
		for n, r := range records {
			if !strings.HasPrefix(r, fmt.Sprint(n)) {
				t.Fatalf("append %d: record %d is %.20q", i, n, r)
			}
		}
	}
}

func TestRefusesOtherFiles(t *testing.T) {
	fs := vfs.NewMem()
	f := folder(fs)
	open(t, f)
	other := Folder{FS: fs, Dir: f.Dir, Format: "other 1"}
	w, err := other.Create(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	empty, err := fs.Create(f.Path(2), vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if err := empty.Close(); err != nil {
		t.Fatal(err)
	}
	for number, want := range map[uint64]string{1: `expected the format "test 1", found "other 1"`, 2: "cannot be read"} {
		if _, err := f.Read(number, nil); !errors.Is(err, model.ErrCorrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("file %d: error %v, want %s", number, err, want)
		}
	}
}
