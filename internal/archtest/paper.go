package archtest

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// paths checks that the files named by the documents exist: every path in back quotes that begins with a
// folder of the source, every bare name of a Go file there, and the target of every relative link.
func paths(t *tree) ([]string, error) {
	named := regexp.MustCompile("`((?:internal|cmd|test|bench|docs|deploy|web)/[A-Za-z0-9_./-]+)`")
	bare := regexp.MustCompile("`([a-z0-9][A-Za-z0-9_]*\\.go)`")
	goFiles := map[string]bool{}
	for _, f := range t.files {
		goFiles[path.Base(f.path)] = true
	}
	linked := regexp.MustCompile(`\]\(([^)#: ]+)(?:#[^)]*)?\)`)
	pages, err := pages(t)
	if err != nil {
		return nil, err
	}
	var bad []string
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		for i, line := range strings.Split(pages[page], "\n") {
			var want []string
			for _, m := range named.FindAllStringSubmatch(line, -1) {
				want = append(want, strings.TrimSuffix(m[1], "/"))
			}
			for _, m := range bare.FindAllStringSubmatch(line, -1) {
				if !goFiles[m[1]] {
					bad = append(bad, fmt.Sprintf("%s:%d: names %s, and no Go file has that name", page, i+1, m[1]))
				}
			}
			for _, m := range linked.FindAllStringSubmatch(line, -1) {
				want = append(want, path.Join(path.Dir(page), m[1]))
			}
			for _, w := range want {
				if _, err := fs.Stat(t.root, w); err != nil {
					bad = append(bad, fmt.Sprintf("%s:%d: names %s, which does not exist", page, i+1, w))
				}
			}
		}
	}
	return bad, nil
}

// roomTable checks that the table of rooms in ARCHITECTURE.md names every package below internal/ except
// suites, and no other.
func roomTable(t *tree) ([]string, error) {
	const page = "ARCHITECTURE.md"
	text, err := fs.ReadFile(t.root, page)
	if err != nil {
		return nil, err
	}
	_, table, _ := strings.Cut(string(text), "\n## The rooms\n")
	table, _, _ = strings.Cut(table, "\n## ")
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9/]+)` \\|").FindAllStringSubmatch(table, -1) {
		listed[m[1]] = true
	}
	var bad []string
	found := map[string]bool{}
	for _, f := range t.files {
		name, ok := strings.CutPrefix(f.dir(), "internal/")
		if !ok || isSuite(name) || f.isTest() || found[name] {
			continue
		}
		found[name] = true
		if !listed[name] {
			bad = append(bad, fmt.Sprintf("%s: the table of rooms lacks | `%s` | with one sentence", page, name))
		}
	}
	for name := range listed {
		if !found[name] {
			bad = append(bad, fmt.Sprintf("%s: the table of rooms names %s, which is not a package", page, name))
		}
	}
	slices.Sort(bad)
	return bad, nil
}

// comments checks that the pages that Go files name exist.
func comments(t *tree) []string {
	page := regexp.MustCompile(`\bdocs/(?:adr/)?[A-Za-z0-9_-]+\.md\b`)
	var bad []string
	for _, f := range t.files {
		if f.below("internal/archtest") {
			continue // names pages of a fake tree
		}
		for _, name := range page.FindAllString(string(f.text), -1) {
			if _, err := fs.Stat(t.root, name); err != nil {
				bad = append(bad, fmt.Sprintf("%s: names %s, which does not exist", f.path, name))
			}
		}
	}
	return bad
}

// license checks that the licence is present and complete, and that no dependency has a licence that binds
// the product.
func license(t *tree) ([]string, error) {
	text, err := fs.ReadFile(t.root, "LICENSE")
	if err != nil {
		return nil, err
	}
	var bad []string
	for _, want := range []string{"Apache License", "Version 2.0, January 2004", "END OF TERMS AND CONDITIONS"} {
		if !strings.Contains(string(text), want) {
			bad = append(bad, fmt.Sprintf("LICENSE: lacks %q", want))
		}
	}
	mod, err := fs.ReadFile(t.root, "go.mod")
	if err != nil {
		return nil, err
	}
	agpl := regexp.MustCompile(`github\.com/grafana/(loki|mimir|tempo|pyroscope)(/\S*)?`)
	for _, m := range agpl.FindAllString(string(mod), -1) {
		if !strings.HasPrefix(m, "github.com/grafana/loki/pkg/push") {
			bad = append(bad, fmt.Sprintf("go.mod: requires %s, which is AGPL; Shale is Apache-2.0", m))
		}
	}
	return bad, nil
}
