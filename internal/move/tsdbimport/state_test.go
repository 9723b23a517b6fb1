package tsdbimport

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// TestState: a state is read as it was saved, and the file of another import is refused.
func TestState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	h := Header{Source: "s", Address: "a", Tenant: "t", From: -1, To: 1 << 60}
	s, err := OpenState(path, h)
	if err != nil {
		t.Fatal(err)
	}
	b := &Block{Folder: "x/y"}
	if err := errors.Join(s.update(b, func(p *Progress) { p.Begun, p.Until, p.Series, p.Samples = true, 5, 1<<60, 7 }), s.Save()); err != nil {
		t.Fatal(err)
	}
	again, err := OpenState(path, h)
	if err != nil || again.progress(b) != (Progress{Begun: true, Until: 5, Series: 1 << 60, Samples: 7}) {
		t.Errorf("%+v, %v", again, err)
	}
	h.Tenant = "u"
	if _, err := OpenState(path, h); !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), "of another import") {
		t.Error(err)
	}
	for _, text := range []string{"", "{", `{"blocks":{"a":null}}`, "[]"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenState(path, Header{}); err == nil {
			t.Errorf("%q is a state", text)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("temporary files are left: %v, %v", entries, err)
	}
}
