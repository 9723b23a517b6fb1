package carbonconf

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/shaledb/shale/internal/model"
)

func TestParse(t *testing.T) {
	f, err := Parse("a.conf", []byte("\xef\xbb\xbf# comment\n; too\n\n[default]\nPattern = .*\nretentions: 60s:1d,\n   5m:30d\n\n  # inside\n[x=y]\r\nempty =\nk = a%%b # not a comment\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []*Section{
		{Name: "default", Line: 4, Keys: []Key{{"pattern", ".*", 5}, {"retentions", "60s:1d,\n5m:30d", 6}}},
		{Name: "x=y", Line: 10, Keys: []Key{{"empty", "", 11}, {"k", "a%b # not a comment", 12}}},
	}
	if diff := cmp.Diff(want, f.Sections, cmpopts.IgnoreUnexported(Section{})); diff != "" {
		t.Error(diff)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a = b\n", `a.conf:1: expected a section such as [default], found "a = b"`},
		{"[]\n", `a.conf:1: expected a section`},
		{"[a\n", `a.conf:1: expected a section`},
		{"[a]\nx\n", `a.conf:2: [a]: expected key = value, found "x"`},
		{"[a]\n= x\n", `a.conf:2: [a]: expected key = value`},
		{"[a]\nx=1\nX=2\n", `a.conf:3: [a]: x is already on line 2`},
		{"[a]\n[b]\n[a]\n", `a.conf:3: section [a] is already on line 1`},
		{"[a]\nx=%(y)s\n", `a.conf:2: [a]: x: values with %(name)s are not supported`},
		{"[a]\nx=\xff\n", `a.conf:2: the line is not UTF-8`},
		{"[a]\nx=" + strings.Repeat("a", maxLine), `a.conf:2: the line is too long: must have at most 65536 bytes`},
	} {
		if _, err := Parse("a.conf", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%.20q: got error %v, want %s", c.text, err, c.want)
		}
	}
}

func TestReadFileIsBounded(t *testing.T) {
	for _, path := range []string{"/dev/zero", "/nonexistent", t.TempDir()} {
		if text, err := ReadFile(path); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s: %d bytes, error %v", path, len(text), err)
		}
	}
	path := filepath.Join(t.TempDir(), "most")
	if err := os.WriteFile(path, make([]byte, MaxBytes), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadFile(path); err != nil || len(text) != MaxBytes {
		t.Errorf("a file of the largest size: %d bytes, error %v", len(text), err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"[a]\nb=c\n", "[a]\nb=c\n d\n", "[", "%(", "[a]\n#\n;\n=", "\xef\xbb\xbf[a]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse("f", text)
		if err != nil {
			return
		}
		for _, s := range file.Sections {
			if s.Name == "" || s.Line == 0 {
				t.Errorf("section %+v", s)
			}
		}
	})
}
