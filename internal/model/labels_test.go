package model

import (
	"bytes"
	"strings"
	"testing"
)

// TestGet compares Get with a walk over all labels.
func TestGet(t *testing.T) {
	long := strings.Repeat("n", 300)
	l := LabelsOf("", "x", "a", "1", "ab", strings.Repeat("v", 300), "b", "", "c", "z", long, "far")
	for _, name := range []string{"", "a", "ab", "abc", "b", "c", long, long[:299], "zz"} {
		var want []byte
		for n, v, rest, ok := l.Next(); ok; n, v, rest, ok = rest.Next() {
			if string(n) == name {
				want = v
			}
		}
		if got := l.Get(name); !bytes.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%.10q: got %q, want %q", name, got, want)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	l := LabelsOf("__name__", "http_requests_total", "cluster", "eu-west-1", "container", "api", "handler", "/api/v1/query_range",
		"instance", "10.1.2.3:9100", "job", "api-server", "namespace", "default", "pod", "api-server-5d4f8c9b7-x2x4z")
	for b.Loop() {
		if l.Get("job") == nil || l.Get("node") != nil {
			b.Fatal("no job, or a node")
		}
	}
}
