//go:build e2e

package e2e

import (
	"bytes"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestCommandLine lets the program query its own server, as a script and as a person do.
func TestCommandLine(t *testing.T) {
	s := newServer(t, t.TempDir())
	s.start()
	if s.program == "" {
		t.Skip("the server is not Shale")
	}
	lines := linesOfTwoApps(time.Now())
	pushLines(t, s.url(), append(slices.Clone(lines), sentLine{at: time.Now(), app: "odd", text: "\x1b[2J\x00\u009bline\r\none"}))
	shale := func(args ...string) (stdout, stderr string) {
		t.Helper()
		var out, errs bytes.Buffer
		cmd := exec.Command(s.program, append(args, "--url", s.url())...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Errorf("shale %s: %v: %s", args, err, errs.String())
		}
		return out.String(), errs.String()
	}
	if out, errs := shale("query", "--logs", `{app=~"web|db"}`, "--forward", "--limit", "0", "-o", "raw"); !slices.Equal(strings.Split(strings.TrimSuffix(out, "\n"), "\n"), texts(lines, nil)) || errs != "" {
		t.Errorf("raw lines differ: %.500s%s", out, errs)
	}
	if out, errs := shale("query", "--logs", `{app="web"}`, "-o", "raw", "--limit", "7", "--since", "6m"); strings.Count(out, "\n") != 7 || !strings.Contains(errs, "--limit 7 is reached") {
		t.Errorf("%s%s", out, errs)
	}
	out, _ := shale("query", "--logs", `{app="odd"}`)
	if strings.ContainsFunc(strings.ReplaceAll(out, "\n", ""), func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) || strings.Count(out, "\n") != 2 || !strings.Contains(out, `\x1b[2J\x00\u009bline\r\none`) {
		t.Errorf("%q", out)
	}
	if out, errs := shale("query", "--logs", `{app="wep"}`); out != "" || !strings.Contains(errs, `did you mean "web"?`) {
		t.Errorf("%s%s", out, errs)
	}
	if out, errs := shale("query", "--logs", `{app="web"}`, "--start", time.Now().Add(-2*time.Hour).Format("2006-01-02 15:04:05"), "--end", "now-1h"); out != "" || !strings.Contains(errs, "after that is from ") {
		t.Errorf("%s%s", out, errs)
	}
	if out, _ := shale("labels", "app", "--logs", "-o", "raw"); out != "db\nodd\nweb\n" {
		t.Errorf("%s", out)
	}
	if out, _ := shale("series", "--logs", `{job="logcli"}`); strings.Count(out, "\n") != 4 || !strings.HasPrefix(out, "common labels: {job=\"logcli\"") {
		t.Errorf("%s", out)
	}
	out, _ = shale("volume", "--logs", `{app=~"web|db"}`, "--by", "app", "-o", "raw")
	counted := 0
	for row := range strings.Lines(out) {
		n, _ := strconv.Atoi(strings.Split(row, "\t")[2])
		counted += n
	}
	if counted != len(lines) {
		t.Errorf("%d lines, want %d: %s", counted, len(lines), out)
	}
}
