package promwrite

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "re-make testdata/bad_input.txt from the answers")

// TestBadInput compares the responses to all malformed bodies that the tests know, status and text,
// with a file, so that any change of them shows.
func TestBadInput(t *testing.T) {
	limits := testLimits()
	limits.MaxBuckets = 4
	h, _ := newHandler(t, limits)
	var lines []string
	add := func(group, what string, body []byte, headers ...string) {
		w := send(h, body, headers...)
		text := strings.ReplaceAll(strings.TrimSuffix(w.Body.String(), "\n"), "\n", "\n\t\t")
		lines = append(lines, fmt.Sprintf("%s: %s\n\t%d %s", group, what, w.Code, text))
	}
	block := func(raw string) []byte { return snappy.Encode(nil, []byte(raw)) }
	for what, c := range hostileSnappy(t) {
		add("snappy", what, c.body)
	}
	for what, c := range hostileZstd(t) {
		add("zstd", what, c.body, "Content-Encoding", "zstd")
	}
	for what, raw := range malformedV1() {
		add("1.0", what, block(raw))
	}
	for what, raw := range malformedV2() {
		add("2.0", what, block(raw), "Content-Type", typeV2)
	}
	table, _, bad := badReferences()
	for what, c := range bad {
		add("references of 2.0", what, block(table+c.series), "Content-Type", typeV2)
	}
	for what, c := range badHistograms() {
		add("histogram", what, block(msg(1, label("__name__", "m"), msg(4, c.body))))
	}
	for what, headers := range map[string][]string{
		"JSON": {"Content-Type", "application/json"}, "no media type": {"Content-Type", "/;;="},
		"version 3": {"Content-Type", "application/x-protobuf;proto=io.prometheus.write.v3.Request"}, "gzip": {"Content-Encoding", "gzip"},
		"snappy twice": {"Content-Encoding", "snappy, snappy"}, "tenant with a slash": {"X-Scope-OrgID", "a/b"}, "tenant of 200 bytes": {"X-Scope-OrgID", strings.Repeat("x", 200)},
	} {
		add("headers", what, nil, headers...)
	}
	slices.Sort(lines)
	got := strings.Join(lines, "\n") + "\n"
	name := filepath.Join("testdata", "bad_input.txt")
	if *rewrite {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("if this is meant, run go test -run BadInput -rewrite\n%s", diff)
	}
}
