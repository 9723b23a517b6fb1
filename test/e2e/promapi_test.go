//go:build e2e

package e2e

import (
	"bytes"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// fetch returns the status and the body of a response.
func fetch(t *testing.T, method, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestPromtoolChecks runs the checks of the current promtool against a server.
func TestPromtoolChecks(t *testing.T) {
	s := newServer(t, t.TempDir())
	s.start()
	promtool := promTool(t, "promtool")
	for _, what := range []string{"healthy", "ready"} {
		if out, err := exec.Command(promtool, "check", what, "--url="+s.url()).CombinedOutput(); err != nil {
			t.Errorf("check %s: %v\n%s", what, err, out)
		}
	}
	_, metrics := fetch(t, "GET", s.url()+"/metrics")
	check := exec.Command(promtool, "check", "metrics", "--lint=all")
	check.Stdin = strings.NewReader(metrics)
	if out, err := check.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("check metrics: %v\n%s", err, out)
	}
}

// TestOpenAPIPaths asks every path of the OpenAPI document.
func TestOpenAPIPaths(t *testing.T) {
	s := newServer(t, t.TempDir())
	s.start()
	_, text := fetch(t, "GET", s.url()+"/api/v1/openapi.yaml")
	var document struct {
		Paths map[string]map[string]any
	}
	if err := yaml.Unmarshal([]byte(text), &document); err != nil || len(document.Paths) < 30 {
		t.Fatalf("%d paths, %v", len(document.Paths), err)
	}
	for path, item := range document.Paths {
		target := s.url() + "/api/v1" + strings.ReplaceAll(path, "{name}", "job")
		if item["servers"] != nil {
			target = s.url() + path
		}
		for _, method := range []string{"GET", "POST", "PUT"} {
			status, body := fetch(t, method, target)
			_, named := item[strings.ToLower(method)]
			if taken := status != http.StatusMethodNotAllowed && status != http.StatusNotFound; taken != named {
				t.Errorf("%s %s: %d %.200s, and the document says %t", method, target, status, body, named)
			}
		}
	}
}
