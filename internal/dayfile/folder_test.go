package dayfile

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
)

func TestFolder(t *testing.T) {
	mem := vfs.NewCrashableMem()
	f := &Folder{FS: mem, Dir: "/days", Days: 2}
	if err := f.Load("2026-11-26", new(int)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a folder: %v", err)
	}
	for i, day := range []string{"2026-11-24", "2026-11-25", "2026-11-26", "2026-11-27"} {
		if err := errors.Join(f.Save(day, -1), f.Save(day, i)); err != nil {
			t.Fatal(err)
		}
	}
	if days, err := f.List(); err != nil || !slices.Equal(days, []string{"2026-11-25", "2026-11-26", "2026-11-27"}) {
		t.Errorf("%v, %v", days, err)
	}
	// What was saved is there after a power cut.
	f.FS = mem.CrashClone(vfs.CrashCloneCfg{})
	got := 0
	if err := f.Load("2026-11-27", &got); err != nil || got != 3 {
		t.Errorf("%d, %v", got, err)
	}
	for _, day := range []string{"", "today", "2026-11-26/../x", "2026-13-01"} {
		if err := f.Load(day, &got); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%q: %v", day, err)
		}
	}
	if err := f.Save("2026-11-28", strings.Repeat("x", MaxBytes)); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a document that is too large: %v", err)
	}
	if Day(0) != "1970-01-01" {
		t.Error(Day(0))
	}
}
