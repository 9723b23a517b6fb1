package policy

import (
	"os"
	"path/filepath"
	"testing"
)

// TestEmptiedFile: a file of schemas that is empty for a moment changes nothing; one with other sections
// does.
func TestEmptiedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "storage-schemas.conf")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("[a]\npattern = .*\nretentions = 60s:1d,1h:3y\n")
	f, err := Open(Limits{Schemas: path})
	if err != nil {
		t.Fatal(err)
	}
	write("# nothing yet\n")
	if err := f.load(); err == nil || !f.Policies().HaveRollups() {
		t.Errorf("an emptied file is in force: %v", err)
	}
	write("[a]\npattern = .*\nretentions = 60s:3y\n")
	if err := f.load(); err != nil || f.Policies().HaveRollups() {
		t.Errorf("a changed file is not in force: %v", err)
	}
}
