package carbonexplain

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the golden file again")

// TestExplain explains the settings that the example of carbon 1.1.10 has, and more.
func TestExplain(t *testing.T) {
	var out bytes.Buffer
	if err := (&Command{File: "testdata/carbon.conf"}).Run(&out); !errors.Is(err, ErrBadFile) {
		t.Errorf("a folder with a broken file: error %v", err)
	}
	const golden = "testdata/explained.txt"
	if *rewrite {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Error(diff)
	}
}

// TestKnowsAllSettings: every setting that carbon 1.1.10 has a default for is known.
func TestKnowsAllSettings(t *testing.T) {
	text, err := os.ReadFile("testdata/defaults.txt")
	if err != nil {
		t.Fatal(err)
	}
	all, n := knobs(), 0
	for name := range strings.FieldsSeq(string(text)) {
		if n++; all[name].verdict == "" {
			t.Errorf("%s has no verdict", name)
		}
	}
	if n < 90 {
		t.Errorf("only %d settings were checked", n)
	}
}

func FuzzExplain(f *testing.F) {
	f.Add([]byte("[cache]\nUSER = a\n[relay:b]\nDESTINATIONS = a,\n b\n"))
	f.Add([]byte("[x]\ny: z"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "carbon.conf")
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		if r, err := Explain(path); err == nil {
			_ = r.lines()
		}
	})
}
