package repair

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestNoteIsWhole: a note that cannot be written to its end leaves nothing that reads as a note, and the next
// attempt succeeds.
func TestNoteIsWhole(t *testing.T) {
	for _, kind := range []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpFileSync} {
		mem := vfs.NewMem()
		fails := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == kind {
				return errorfs.ErrInjected
			}
			return nil
		})}
		fs := errorfs.Wrap(mem, fails)
		if err := fs.MkdirAll("/data", 0o755); err != nil {
			t.Fatal(err)
		}
		fails.On()
		if err := Record(fs, "/data", "journal", Note{Why: "a test"}); err == nil {
			t.Fatal("no error")
		}
		fails.Off()
		if notes, err := Notes(mem, "/data"); err != nil || len(notes) > 0 {
			t.Errorf("torn: %+v, %v", notes, err)
		}
		if err := Record(fs, "/data", "journal", Note{Why: "a test"}); err != nil {
			t.Error(err)
		}
		if notes, err := Notes(mem, "/data"); err != nil || len(notes) != 1 {
			t.Errorf("whole: %+v, %v", notes, err)
		}
	}
}
