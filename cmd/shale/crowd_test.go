package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCrowdOfLines: all lines of one time are printed, however many there are and however few the server
// gives at once.
func TestCrowdOfLines(t *testing.T) {
	url := startServer(t)
	at := time.Now().Add(-time.Minute).Truncate(time.Second)
	const crowd = 9000
	var want []string
	var values [][2]string
	add := func(at time.Time, text string) {
		values = append(values, [2]string{fmt.Sprint(at.UnixNano()), text})
		want = append(want, text)
	}
	add(at.Add(-time.Second), "before")
	for i := range crowd {
		add(at, fmt.Sprint("line ", i))
	}
	add(at.Add(time.Second), "after")
	pushJSON(t, url, map[string]any{"streams": []any{map[string]any{"stream": map[string]string{"app": "one"}, "values": values}}})
	for _, c := range []struct {
		args  []string
		lines int
	}{
		{[]string{"--limit", "0"}, crowd + 2},
		{[]string{"--limit", "0", "--forward"}, crowd + 2},
		{[]string{"--limit", "7000"}, 7000},
		{[]string{"--limit", "7000", "--forward"}, 7000},
		{[]string{"--limit", "9001"}, 9001},
		{[]string{"--limit", "3"}, 3},
	} {
		code, out, errs := shale(t, nil, append([]string{"query", "--logs", `{app="one"}`, "--url", url, "-o", "raw"}, c.args...)...)
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if code != exitOK || len(lines) != c.lines {
			t.Fatalf("%v: code %d, %d lines, %s", c.args, code, len(lines), errs)
		}
		if first := lines[0]; slices.Contains(c.args, "--forward") != (first == "before") {
			t.Errorf("%v: the first line is %q", c.args, first)
		}
		slices.Sort(lines)
		if n := len(slices.Compact(lines)); n != c.lines {
			t.Errorf("%v: %d lines, of which %d are different", c.args, c.lines, n)
		}
		if c.lines == len(want) {
			slices.Sort(want)
			if !slices.Equal(lines, want) {
				t.Errorf("%v: other lines", c.args)
			}
		}
	}
}

// TestExactLines: raw lines are printed byte for byte, also those that JSON cannot hold.
func TestExactLines(t *testing.T) {
	url := startServer(t)
	line := "caf\xe9 \xff\xfe \x00 \ufffd end"
	body := fmt.Appendf(nil, `{"streams":[{"stream":{"app":"one"},"values":[["%d","%s",{"trace":"t"}]]}]}`, time.Now().UnixNano(), strings.ReplaceAll(line, "\x00", `\u0000`))
	post(t, url, body)
	for _, args := range [][]string{nil, {"--limit", "0"}} {
		code, out, errs := shale(t, nil, append([]string{"query", "--logs", `{app="one"}`, "--url", url, "-o", "raw"}, args...)...)
		if code != exitOK || out != line+"\n" {
			t.Errorf("code %d: %q %s", code, out, errs)
		}
	}
}

func pushJSON(t *testing.T, url string, push any) {
	t.Helper()
	body, err := json.Marshal(push)
	if err != nil {
		t.Fatal(err)
	}
	post(t, url, body)
}

func post(t *testing.T, url string, body []byte) {
	t.Helper()
	r, err := http.Post(url+"/loki/api/v1/push", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusNoContent {
		t.Fatalf("pushing: %s", r.Status)
	}
}
