package archtest

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// fake builds a tree of files, so that each rule is seen to fail.
func fake(t *testing.T, files map[string]string) *tree {
	t.Helper()
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	tr, err := load(m)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// expect demands exactly these complaints, each known by a part of its text.
func expect(t *testing.T, bad []string, want ...string) {
	t.Helper()
	if len(bad) != len(want) {
		t.Errorf("got %d complaints, want %d:\n%s", len(bad), len(want), strings.Join(bad, "\n"))
		return
	}
	all := strings.Join(bad, "\n")
	for _, w := range want {
		if !strings.Contains(all, w) {
			t.Errorf("no complaint says %q:\n%s", w, all)
		}
	}
}

func imports(pkg string, rooms ...string) string {
	text := "package " + pkg + "\n"
	for _, r := range rooms {
		text += fmt.Sprintf("import _ %q\n", modulePath+"/internal/"+r)
	}
	return text
}

func TestArrowsCanFail(t *testing.T) {
	expect(t, arrows(fake(t, map[string]string{
		"internal/model/a.go":                imports("model"),
		"internal/model/bad.go":              imports("model", "write"),
		"internal/write/ok.go":               imports("write", "model"),
		"internal/write/graphite/ok.go":      imports("graphite", "model", "write"),
		"internal/write/graphite/bad.go":     imports("graphite", "store/head"),
		"internal/write/graphite/ok_test.go": imports("graphite", "store/head"),
		"internal/write/bad_test.go":         imports("write", "app"),
		"internal/read/bad.go":               imports("read", "store/head"),
		"internal/read/readtest/ok.go":       imports("readtest", "read", "model"),
		"internal/read/readtest/bad.go":      imports("readtest", "store/part"),
		"internal/read/bad2.go":              imports("read", "read/readtest"),
		"internal/read/ok_test.go":           imports("read", "read/readtest"),
		"internal/app/bad.go":                imports("app", "bucket/fault"),
		"internal/app/ok_test.go":            imports("app", "bucket/fault"),
		"bench/slow/ok.go":                   imports("main", "bucket/fault"),
		"internal/store/head/ok.go":          imports("head", "store/part"),
		"internal/store/head/bad.go":         imports("head", "bucket"),
		"internal/app/ok.go":                 imports("app", "write", "store/head", "api/prom"),
		"internal/attic/bad.go":              imports("attic", "write"),
		"internal/load/bad.go":               imports("load", "load/attic"),
		"internal/load/attic/bad.go":         imports("attic", "load"),
		"cmd/shale/ok.go":                    imports("main", "app", "config"),
		"bench/ok.go":                        imports("main", "app") + "import _ \"" + modulePath + "/bench/plot\"\n",
		"cmd/shale/bad.go":                   imports("main") + "import _ \"" + modulePath + "/bench/plot\"\n",
	}), rooms()),
		"cmd/shale/bad.go:2: imports "+modulePath+"/bench/plot: the benchmark is no part",
		"internal/model/bad.go:2: imports write: model may import model, because",
		"internal/write/graphite/bad.go:2: imports store/head: write/graphite may import model, peerhost, write, write/body, write/graphite/pickle, write/receive, write/wire, because a protocol",
		"internal/write/bad_test.go:2: imports app",
		"internal/read/bad.go:2: imports store/head",
		"internal/read/readtest/bad.go:2",
		"internal/read/bad2.go:2: imports read/readtest: a test suite",
		"internal/store/head/bad.go:2: imports bucket: store/head may import model, repair, store/deletion, store/head/labels",
		"internal/app/bad.go:2: imports bucket/fault: tests and bench inject faults",
		"internal/attic/bad.go:2: imports write: the room attic is not in the table",
		"internal/load/bad.go:2: imports load/attic: load may import model, because",
		"internal/load/attic/bad.go:2: imports load: the room load/attic is not in the table",
	)
}

func TestTableCanFail(t *testing.T) {
	table := []room{
		{"model", nil, "."},
		{"write", nil, "."},
		{"write/*", map[string]string{"write": "used", "model": "not used"}, "."},
		{"write/b", map[string]string{"write": "not used"}, "."},
		{"attic", nil, "."},
	}
	expect(t, stale(fake(t, map[string]string{
		"internal/model/a.go":           "package model\n",
		"internal/write/a.go":           imports("write", "model"),
		"internal/write/a/a.go":         imports("a", "write"),
		"internal/write/b/a.go":         imports("b", "model"),
		"internal/write/b/a_test.go":    imports("b", "write"),
		"internal/write/a/deep/a.go":    "package deep\n",
		"internal/write/writetest/a.go": "package writetest\n",
		"internal/app/a.go":             imports("app", "write"),
		"internal/roof/roof_test.go":    "package roof\n",
	}), table),
		"attic: this row", "write/* -> model: no import", "write/b -> write: no import", "internal/write/a/deep/a.go: has no row")
}

func TestDocsCanFail(t *testing.T) {
	expect(t, docs(fake(t, map[string]string{
		"internal/a/doc.go":    "// Package a is good.\npackage a\n",
		"internal/a/other.go":  "package a\n",
		"internal/b/b.go":      "package b\n",
		"internal/c/doc.go":    "// Package c is one.\npackage c\n",
		"internal/c/more.go":   "// Package c is two.\npackage c\n",
		"internal/d/doc.go":    "// The package d.\npackage d\n",
		"cmd/tool/doc.go":      "// Command tool is good.\npackage main\n",
		"internal/e/e_test.go": "package e\n",
	})), "internal/b: has 0", "internal/c: has 2", "internal/c/more.go:1: the package doc belongs in doc.go", "internal/d/doc.go:1: the package doc must begin", "internal/e: has 0")
}

func TestHabitsCanFail(t *testing.T) {
	tr := fake(t, map[string]string{
		"internal/util/a.go":   "package util\n",
		"internal/a/a.go":      "package a\nimport \"os\"\nfunc init() {}\nfunc f() { _ = os.Getenv(\"X\"); os.Exit(1) }\n",
		"internal/a/a_test.go": "package a\nimport \"os\"\nfunc init() {}\nvar x = os.Getenv(\"X\")\n",
		"internal/a/b.go":      "package a\n// TO" + "DO: later\nvar s = \"TO" + "DO is a word\"\n",
		"internal/a/c.go":      "package a\ntype T struct{}\nfunc (T) init() {}\n",
		"cmd/x/main.go":        "package main\nimport \"os\"\nfunc main() { os.Exit(len(os.Getenv(\"X\"))) }\n",
	})
	expect(t, names(tr), "internal/util/a.go")
	expect(t, belowCmd(tr), "internal/a/a.go:3: func init", "os.Getenv below cmd: settings", "os.Exit below cmd: return")
	expect(t, promises(tr), "internal/a/b.go:2")
}

func TestFuzzSeedsCanFail(t *testing.T) {
	body := func(name, inner string) string {
		return "package a\nimport \"testing\"\nfunc " + name + "(f *testing.F) {" + inner + "}\n"
	}
	expect(t, fuzzSeeds(fake(t, map[string]string{
		"internal/a/a_test.go":                 body("FuzzAdd", `f.Add("x")`),
		"internal/a/b_test.go":                 body("FuzzFile", ""),
		"internal/a/testdata/fuzz/FuzzFile/01": "go test fuzz v1\n",
		"internal/a/c_test.go":                 body("FuzzNone", "f.Fuzz(nil)"),
		"internal/a/d_test.go":                 body("seed", `f.Add("x")`),
		"internal/a/e_test.go":                 body("FuzzByHand", "seed(f)"),
	})), "FuzzNone has no seeds")
}

func TestSizesCanFail(t *testing.T) {
	long := func(n int) string { return "package a\n" + strings.Repeat("\n", n-1) }
	files := map[string]string{
		"internal/a/fits.go":        long(500),
		"internal/a/over.go":        long(501),
		"internal/a/fits_test.go":   long(1000),
		"internal/a/over_test.go":   long(1001),
		"internal/a/allowed.go":     long(700),
		"internal/a/shrunk.go":      long(600),
		"internal/a/grown.go":       long(900),
		"internal/a/longfunc.go":    "package a\nfunc f() {" + strings.Repeat("\n", 80) + "}\n",
		"internal/a/fitfunc.go":     "package a\nfunc g() {" + strings.Repeat("\n", 79) + "}\n",
		"internal/a/longin_test.go": "package a\nfunc h() {" + strings.Repeat("\n", 80) + "}\n",
	}
	for i := range 31 {
		files[fmt.Sprintf("internal/many/f%d.go", i)] = long(100)
		files[fmt.Sprintf("internal/many/f%d_test.go", i)] = long(100)
		files[fmt.Sprintf("internal/big/f%d.go", i%11)] = long(500)
	}
	tr := fake(t, files)
	const text = "internal/a/allowed.go 700 lines\ninternal/a/gone.go 510 lines\ninternal/a/grown.go 800 lines\ninternal/a/shrunk.go 650 lines\n"
	allowed := readOrFail(t, "# comment\n"+text)
	if allowed.String() != text {
		t.Errorf("written and read, the ratchet is\n%s", allowed)
	}
	expect(t, sizes(tr, allowed), "internal/a/over.go: 501 lines", "internal/a/over_test.go: 1001", "internal/a/grown.go: 900",
		"internal/a/longfunc.go:f: 81", "internal/many: 31 files", "internal/big: 5500 lines")
	if got, want := allowed.lowered(oversized(tr)).String(), "internal/a/allowed.go 700 lines\ninternal/a/grown.go 800 lines\ninternal/a/shrunk.go 600 lines\n"; got != want {
		t.Errorf("the lowered ratchet is\n%swant\n%s", got, want)
	}
}

func readOrFail(t *testing.T, text string) ratchet {
	t.Helper()
	r, err := readRatchet(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRatchetRefusesOtherForms(t *testing.T) {
	for _, text := range []string{"a 1\n", "a\tx lines\n"} {
		if r, err := readRatchet(text); err == nil {
			t.Errorf("%q is read as %v", text, r)
		}
	}
}

func TestProseCanFail(t *testing.T) {
	wide, words, twelve := strings.Repeat("a", 108), strings.Repeat("word ", 34), strings.Repeat("word ", 12)
	tr := fake(t, map[string]string{
		"internal/a/doc.go": "// Package a has a sentence of thirty-five words and\n// " + twelve + "\n// " + twelve + "no more. A longer one:\n// " +
			twelve + "\n// " + twelve + twelve[:25] + "and its very end.\n//\n//\t" + twelve + "\n//\t" + twelve + "\n//\t" + twelve + "\npackage a\n",
		"internal/a/wide.go": "package a\n//" + wide + "\n//" + wide + "b\n\nvar x = `" + wide + wide + "`\n\nvar y = 1 //" + wide + "\n" +
			"/* " + wide + "\n" + wide + "ccc */\n",
		"internal/a/words.go":    "package a\n// f is none\n// other. It waits behind a proxy, or lags behind. Nobody\n// who calls. Users who call. A sender who\nvar f = `it comes to nothing here`\nvar g = `anew`\n",
		"internal/a/a_test.go":   "package a\n// It is no test.\nvar x = `a test may say nobody`\n",
		"internal/a/b/words.go":  "package b\n// Far too dear.\n",
		"internal/a/c/c.go":      "package c\n// On no account: nobody.\n",
		"internal/d/d.go":        "package d\n// For\n// ever at\n// hand by the\n// letter. It sees to it and goes\n// without.\n",
		"docs/x.md":              "There is no `beside` here, there is none, and it is no longer.\n```\nbeside\n```\nIt lies beside\nthat.\n\n| " + words + "| " + words + "|\n",
		"docs/adr/0001-a.md":     "# " + words + "\n\n    " + words + words + "\n\n" + words + "[a b c](x)\n- " + words + "\n",
		"internal/archtest/a.go": "package archtest\n// nobody\n",
	})
	found, err := prose(tr)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range found {
		all = append(all, fmt.Sprintf("%s %s: %s", f.at, f.unit, f.text))
	}
	expect(t, all, "a/doc.go:1 long: a sentence of 36 words", "a/wide.go:3 wide", "a/wide.go:7 wide", "a/wide.go:8 wide", "a/wide.go:9 wide",
		`a/words.go:2 words: "f is none"`, `a/words.go:3 words: "Nobody"`, `a/words.go:4 words: "Nobody who"`, `a/words.go:4 words: "sender who"`, `a/words.go:5 words: "comes to"`,
		`a/a_test.go:2 words: "It is no test"`, `a/b/words.go:2 words: "dear"`, `c.go:2 words: "nobody"`,
		`d.go:3 words: "For ever"`, `d.go:4 words: "at hand"`, `d.go:5 words: "by the letter"`, `d.go:5 words: "sees to it"`, `d.go:6 words: "goes without"`,
		`docs/x.md:5 words: "beside"`, "docs/adr/0001-a.md:5 long: a sentence of 37")

	allowed := readOrFail(t, "internal/a 6 words 4 wide 1 long\ninternal/a/c 2 words\ninternal/d 5 words\ndocs/x.md 1 words\n")
	expect(t, overProse(found, allowed), "docs/adr/0001-a.md: 1 long, 0 allowed", "internal/a: 7 words, 6 allowed")
	if got, want := allowed.lowered(accounts(found, allowed)).String(), "docs/x.md 1 words\ninternal/a 1 long 4 wide 6 words\ninternal/a/c 1 words\ninternal/d 5 words\n"; got != want {
		t.Errorf("the lowered ratchet is\n%swant\n%s", got, want)
	}
}

func TestPaperCanFail(t *testing.T) {
	tr := fake(t, map[string]string{
		"internal/a/a.go": "package a\n// See docs/x.md and docs/none.md.\n",
		"docs/x.md":       "See `internal/a/a.go` and `internal/a/` and `internal/b/b.go`.\n[good](y.md#part) [bad](z.md) [web](https://example.com/q.md)\n",
		"docs/y.md":       "`make run` `a.go` `gone.go`\n",
		"README.md":       "[x](docs/x.md) `cmd/none`\n",
		"LICENSE":         "Apache License\nVersion 2.0, January 2004\n",
		"go.mod":          "require (\n\tgithub.com/grafana/loki/pkg/push v1\n\tgithub.com/grafana/loki/v3 v3\n)\n",
	})
	bad, err := paths(tr)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, bad, "docs/x.md:1: names internal/b/b.go", "docs/x.md:2: names docs/z.md", "docs/y.md:1: names gone.go", "README.md:1: names cmd/none")
	expect(t, comments(tr), "internal/a/a.go: names docs/none.md")
	bad, err = license(tr)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, bad, "LICENSE: lacks", "github.com/grafana/loki/v3")
}

func TestRoomTableCanFail(t *testing.T) {
	bad, err := roomTable(fake(t, map[string]string{
		"ARCHITECTURE.md":           "# A\n\n| `before` | . |\n\n## The rooms\n\n| `a` | A. |\n| `a/b` | B. |\n| `gone` | G. |\n\n## After\n\n| `after` | . |\n",
		"internal/a/a.go":           "package a\n",
		"internal/a/b/b.go":         "package b\n",
		"internal/a/c/c.go":         "package c\n",
		"internal/a/c/d.go":         "package c\n",
		"internal/a/atest/suite.go": "package atest\n",
		"internal/a/d/d_test.go":    "package d\n",
		"cmd/x/main.go":             "package main\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, bad, "lacks | `a/c` |", "names gone")
}

func TestMetricsAreFound(t *testing.T) {
	list, bad := metrics(fake(t, map[string]string{"internal/a/a.go": `package a
var a = f.NewCounterVec(prometheus.CounterOpts{Name: "shale_a_total", Help: "A."}, []string{"x", "y"})
var b = gauge("shale_b", "B.", func() float64 { return 1 })
var c = prometheus.GaugeOpts{Name: "shale_c", Help: "no sentence"}
var d = name("shale_d")
var e = prometheus.NewDesc("shale_e", "E.", []string{"z"}, nil)
`}))
	if got, want := metricTable(list), "| metric | labels | what it counts |\n|---|---|---|\n| `shale_a_total` | x, y | A. |\n| `shale_b` |  | B. |\n| `shale_c` |  | no sentence |\n| `shale_e` | z | E. |\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	expect(t, bad, "shale_d is declared in a form", "shale_c: its help text")
}

func TestGoroutinesCanFail(t *testing.T) {
	const begin = "package a\nimport \"" + modulePath + "/internal/model\"\nfunc start() {\n"
	expect(t, goroutines(fake(t, map[string]string{
		"internal/a/ok.go":       begin + "go func() { _ = model.Caught(f) }()\ng.Go(model.Catching(f))\ngo func() { defer func() { recover() }() }()\nGo(f)\n}",
		"internal/a/bad.go":      begin + "go func() { f() }()\ng.Go(f)\nx.y.Go(func() { other.Caught(f) })\n}",
		"internal/a/ok_test.go":  begin + "go f()\n}",
		"internal/a/called.go":   begin + "go g(1)\nx.Go(func() { y.g() })\n}\nfunc g() { _ = model.Caught(f) }",
		"internal/b/c/ok.go":     begin + "go f()\n}",
		"internal/bc/ok.go":      begin + "_ = model.Caught(f)\n}",
		"internal/only/this.go":  begin + "go f()\n}",
		"internal/only/other.go": begin + "go f()\n}",
		"test/ok.go":             begin + "go f()\n}",
	}), map[string]string{"internal/b": "b", "internal/bc": "bc", "internal/only/this.go": "this"}),
		"internal/a/bad.go:4", "internal/a/bad.go:5", "internal/a/bad.go:6", "internal/only/other.go:4", "internal/bc: starts no goroutine")
}
