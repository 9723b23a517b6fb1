package config

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// -rewrite writes the golden files.
var rewrite = flag.Bool("rewrite", false, "write the expected errors and the table of settings")

func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("testdata/bad holds %d files (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			_, _, err := Load(Sources{File: file})
			if !errors.Is(err, model.ErrInvalid) {
				t.Fatalf("got %v, want an error of class invalid", err)
			}
			got := err.Error() + "\n"
			golden := strings.TrimSuffix(file, ".yaml") + ".error"
			if *rewrite {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if !strings.Contains(got, file+":") {
				t.Errorf("the error names no line of %s: %s", file, got)
			}
		})
	}
}

func TestPrecedence(t *testing.T) {
	file := writeFile(t, t.TempDir(), "shale.yaml", "retention: 1d\nmax-age: 1d\nmax-future: 1m\nquery:\n  timeout: 3s\nlog: {level: debug}\n")
	var flags Config
	flags.Write.MaxFuture = 3 * time.Second
	c, from, err := Load(Sources{
		File:     file,
		Environ:  []string{"HOME=/root", "SHALE_MAX_AGE=2d", "SHALE_MAX_FUTURE=2m", "SHALE_QUERY_MAX_SERIES=7", "SHALE_CONFIG=x.yaml", "SHALE_TOKEN_FILE=token"},
		Flags:    flags,
		FlagsSet: []string{"max-future"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct{ name, text, from string }{
		{"retention", "1d", file + ":1:12"},
		{"max-age", "2d", "SHALE_MAX_AGE"},
		{"max-future", "3s", "--max-future"},
		{"query.timeout", "3s", file + ":5:12"},
		{"query.max-series", "7", "SHALE_QUERY_MAX_SERIES"},
		{"log.level", "debug", file + ":6:14"},
		{"data-dir", "./shale-data", "default"},
	} {
		l := loader{settings: Settings()}
		if got := l.find(want.name).Text(&c); got != want.text || from[want.name] != want.from {
			t.Errorf("%s = %q from %q, want %q from %q", want.name, got, from[want.name], want.text, want.from)
		}
	}
}

func TestBadEnvironment(t *testing.T) {
	_, _, err := Load(Sources{Environ: []string{"SHALE_RETENTION=soon", "SHALE_MAX_AEG=1d", "SHALE_QUERY_TIMEOUT=0"}})
	for _, want := range []string{`SHALE_RETENTION: retention: "soon" is not`, `unknown variable SHALE_MAX_AEG; did you mean SHALE_MAX_AGE?`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to contain %q", err, want)
		}
	}
	_, _, err = Load(Sources{Environ: []string{"SHALE_QUERY_TIMEOUT=0"}})
	if err == nil || !strings.Contains(err.Error(), "SHALE_QUERY_TIMEOUT: query.timeout: 0 is too small") {
		t.Errorf("got %v", err)
	}
}

func TestEmptyFileAndMissingFile(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n"} {
		c, _, err := Load(Sources{File: writeFile(t, t.TempDir(), "c.yaml", text)})
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(Default(), c, cmp.AllowUnexported(Share{})); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	if _, _, err := Load(Sources{File: "testdata/none.yaml"}); err == nil {
		t.Error("a missing file is not an error")
	}
}

// The effective configuration, as it is shown, parses as the same configuration.
func TestShownConfigurationReadsBack(t *testing.T) {
	in := "retention-rules: [{tenant: 'a*', match: '{a=\"b: #c\"}', keep: 3d}]\nbucket: 'a b: #c'\nmemory: 300MiB\ndisk: 12.5%\nretention: 1d30s\ngraphite-listen: ''\nquery: {max-bytes: 1234567B}\nlimits: {tenant-lines: 9223372036854775807}\nhttp-listen: ':9480'\n"
	c, from, err := Load(Sources{File: writeFile(t, t.TempDir(), "in.yaml", in)})
	if err != nil {
		t.Fatal(err)
	}
	back, _, err := Load(Sources{File: writeFile(t, t.TempDir(), "out.yaml", c.YAML(from))})
	if err != nil {
		t.Fatalf("%v\n%s", err, c.YAML(from))
	}
	if diff := cmp.Diff(c, back, cmp.AllowUnexported(Share{})); diff != "" {
		t.Error(diff)
	}
}

func TestEverySettingIsDocumentedAndUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Settings() {
		if s.Help == "" || !strings.HasSuffix(s.Help, ".") {
			t.Errorf("%s: the help text %q is not a sentence", s.Name, s.Help)
		}
		if seen[s.Env] || seen[s.Name] {
			t.Errorf("%s or %s is there twice", s.Name, s.Env)
		}
		seen[s.Name], seen[s.Env] = true, true
	}
	for _, r := range rules() {
		if !seen[r.setting] {
			t.Errorf("a rule checks %q, which is not a setting", r.setting)
		}
	}
}

// The table of settings in docs/operations.md is made from the tags.
func TestOperationsTable(t *testing.T) {
	const doc, begin, end = "../../docs/operations.md", "<!-- settings: begin, made by internal/config -->\n", "<!-- settings: end -->"
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(text), begin)
	table, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s lacks the marks %q and %q", doc, begin, end)
	}
	if table != Table() && *rewrite {
		if err := os.WriteFile(doc, []byte(head+begin+Table()+end+tail), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(Table(), table); diff != "" {
		t.Errorf("%s does not match the settings; run go test ./internal/config -rewrite (-want +got):\n%s", doc, diff)
	}
}

func TestOldestAge(t *testing.T) {
	for _, c := range []struct {
		retention, maxAge, want time.Duration
		setting                 string
	}{{0, 0, 0, ""}, {0, 5, 5, ""}, {5, 0, 5, "retention"}, {3, 5, 3, "retention"}, {5, 3, 3, ""}} {
		got, setting := (&Config{Retention: c.retention, Write: write.Limits{MaxAge: c.maxAge}}).OldestAge()
		if got != c.want || setting != c.setting {
			t.Errorf("retention %d, max-age %d: got %d of %q, want %d of %q", c.retention, c.maxAge, got, setting, c.want, c.setting)
		}
	}
}

// Rows are accepted up to the longest age of any rule.
func TestOldestAgeOfRules(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"retention: 3d\nretention-rules: [{tenant: a, keep: 9d}]": 9 * day,
		"retention: 3d\nretention-rules: [{tenant: a, keep: 1d}]": 3 * day,
		"retention: 3d\nretention-rules: [{tenant: a, keep: 0}]":  0,
		"retention: 3d\nretention-rules: '[{\"keep\": \"1d\"}]'":  3 * day,
		"retention: 0\nretention-rules: [{tenant: a, keep: 9d}]":  0,
	} {
		c, _, err := Load(Sources{File: writeFile(t, t.TempDir(), "in.yaml", "max-age: 0\n"+text+"\n")})
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := c.OldestAge(); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}

// Messages of other rooms name settings that exist.
func TestMessagesNameSettings(t *testing.T) {
	known := map[string]bool{}
	for _, s := range Settings() {
		known[s.Name] = true
	}
	named := regexp.MustCompile(`\b(?:limits|query)\.[a-z]+(?:-[a-z]+)+\b`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, name := range named.FindAllString(string(text), -1) {
			if !known[name] {
				t.Errorf("%s: names %s, which is not a setting", path, name)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
