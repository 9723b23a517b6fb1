package whisperimport

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	const name = "disk.used;dc=eu;host=web1"
	h := hash(name)
	path := filepath.Join(t.TempDir(), "names")
	if err := os.WriteFile(path, []byte("other;a=b\n\n"+name+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	names, err := ReadNames(path)
	if err != nil {
		t.Fatal(err)
	}
	none, err := ReadNames("")
	if err != nil {
		t.Fatal(err)
	}
	folder := "_tagged/" + h[:3] + "/" + h[3:6] + "/"
	for _, c := range []struct {
		names      *Names
		path, want string
	}{
		{none, "a/b/c.wsp", "a.b.c"},
		{none, "a.wsp", "a"},
		{none, folder + "disk_DOT_used;dc=eu;host=web1.wsp", name},
		{names, folder + h + ".wsp", name},
		{none, folder + h + ".wsp", "error: the file of a tagged series is called by its hash"},
		{none, "_tagged/abc/def/disk_DOT_used;dc=eu;host=web1.wsp", "error: the file of a tagged series is in the folder abc/def"},
		{none, "a\xff.wsp", "error: the path is not UTF-8"},
	} {
		got, err := c.names.Of(c.path)
		if err != nil {
			got = "error: " + strings.TrimPrefix(err.Error(), "invalid: ")
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %s, want %s", c.path, got, c.want)
		}
	}
	for name, want := range map[string]string{
		"a.b":          `{__name__="a.b"}`,
		"a;b=c;name=x": `{__name__="a", b="c"}`,
		"a;b":          `{__name__="a;b"}`,
		"a;b=~c":       `{__name__="a;b=~c"}`,
		"~a;b=c":       `{__name__="a", b="c"}`,
		"a;__name__=c": `{__name__="a;__name__=c"}`,
		";a=b":         `{__name__=";a=b"}`,
	} {
		if got := labelsOf(name).String(); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// Folders are walked so that a run can go on after any file.
func TestWalk(t *testing.T) {
	dir := t.TempDir()
	for _, p := range []string{"a.wsp", "a/b.wsp", "a-b.wsp", "a/b/c.wsp", "b.wsp", "a/notes.txt", "z/"} {
		path := filepath.Join(dir, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(p, "/") {
			continue
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all := func(until string) (found []string) {
		if err := walk(t.Context(), dir, until, func(p string) error { found = append(found, p); return nil }); err != nil {
			t.Fatal(err)
		}
		return found
	}
	order := all("")
	if len(order) != 5 {
		t.Fatalf("found %v", order)
	}
	for i, p := range order {
		if got, want := all(p), order[i+1:]; strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("after %s: got %v, want %v", p, got, want)
		}
	}
}
