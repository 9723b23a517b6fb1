//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/client"
)

var (
	logcliBinary = flag.String("logcli", "", "the logcli to use; that of test/logcli is built if empty, which takes some minutes the first time")
	logsURL      = flag.String("logs-url", "", "a server that runs already, to be asked by logcli in place of Shale: a Loki tests the test")
)

// logcliModule is the module that pins Loki and builds its client.
const logcliModule = "../logcli"

// newPromtail builds the program that ships lines with Promtail's client.
func newPromtail(t *testing.T) string {
	t.Helper()
	return goBuild(t, logcliModule, "./promtail")
}

// logcli is Loki's client.
type logcli struct{ program, url string }

// newLogcli finds or builds logcli, and starts the server unless one runs already.
func newLogcli(t *testing.T, url func() string) logcli {
	t.Helper()
	c := logcli{program: *logcliBinary}
	if c.program == "" {
		cmd := exec.Command("go", "tool", "-n", "logcli")
		cmd.Dir = logcliModule
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("building logcli: %v", err)
		}
		c.program = strings.TrimSpace(string(out))
	}
	if c.url = *logsURL; c.url == "" {
		c.url = url()
	}
	return c
}

// run returns the lines that a command writes.
func (c logcli) run(t *testing.T, args ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.program, append([]string{"--addr", c.url, "--quiet", "--timezone", "UTC"}, args...)...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		t.Fatalf("logcli %q: %v\n%s%s", args, err, complaints.String(), out.String())
	}
	return strings.FieldsFunc(out.String(), func(r rune) bool { return r == '\n' })
}

// sentLine is a line as it is pushed.
type sentLine struct {
	at   time.Time
	app  string
	text string
}

// pushLines pushes lines, each app a stream.
func pushLines(t *testing.T, url string, lines []sentLine) {
	t.Helper()
	var push []client.Line
	for _, l := range lines {
		push = append(push, client.Line{At: l.at.UnixNano(), Labels: map[string]string{"job": "logcli", "app": l.app}, Text: []byte(l.text)})
	}
	if err := api(url).PushLines(t.Context(), push); err != nil {
		t.Fatal(err)
	}
}

// linesOfTwoApps returns some hundreds of lines of the last minutes; every second line is JSON, every third
// logfmt.
func linesOfTwoApps(now time.Time) (lines []sentLine) {
	for i := range 240 {
		l := sentLine{at: now.Add(time.Duration(i-300)*time.Second + time.Duration(i)*time.Microsecond), app: []string{"web", "db"}[i/3%2]}
		switch status := 200 + i%4*100; i % 3 {
		case 0:
			l.text = fmt.Sprintf(`{"n":%d,"status":%d,"path":"/a/%d","nested":{"x":"y"}}`, i, status, i%7)
		case 1:
			l.text = fmt.Sprintf(`n=%d status=%d msg="took \"long\"" took=%dms`, i, status, i)
		default:
			l.text = fmt.Sprintf("plain line %d with a tab\tand ünïcode, <html> & co", i)
		}
		lines = append(lines, l)
	}
	return lines
}

func texts(lines []sentLine, wanted func(sentLine) bool) (out []string) {
	for _, l := range lines {
		if wanted == nil || wanted(l) {
			out = append(out, l.text)
		}
	}
	return out
}

func has(part string) func(sentLine) bool {
	return func(l sentLine) bool { return strings.Contains(l.text, part) }
}

// TestLogcli lets Loki's own client read, list and follow lines.
func TestLogcli(t *testing.T) {
	if *serverKind != "shale" {
		t.Skip("it is about logs")
	}
	c := newLogcli(t, func() string {
		s := newServer(t, t.TempDir())
		s.start()
		return s.url()
	})
	lines := linesOfTwoApps(time.Now())
	pushLines(t, c.url, lines)
	all := texts(lines, nil)
	same := func(t *testing.T, got, want []string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%d lines, want %d; the first that differs: %s", len(got), len(want), firstUnequal(got, want))
		}
	}
	backward := func(lines []string) []string {
		out := slices.Clone(lines)
		slices.Reverse(out)
		return out
	}
	for name, q := range map[string]struct {
		query string
		flags []string
		want  []string
	}{
		"forward":               {`{job="logcli"}`, []string{"--forward", "--limit", "1000"}, all},
		"backward":              {`{job="logcli"}`, []string{"--limit", "1000"}, backward(all)},
		"newest five":           {`{job="logcli"}`, []string{"--limit", "5"}, backward(all)[:5]},
		"oldest seven":          {`{job="logcli"}`, []string{"--limit", "7", "--forward"}, all[:7]},
		"in batches":            {`{job="logcli"}`, []string{"--limit", "100", "--batch", "9", "--forward"}, all[:100]},
		"in batches, backward":  {`{job="logcli"}`, []string{"--limit", "0", "--batch", "50"}, backward(all)},
		"one app":               {`{job="logcli",app="db"}`, []string{"--limit", "1000", "--forward"}, texts(lines, func(l sentLine) bool { return l.app == "db" })},
		"an app by regex":       {`{job="logcli",app=~"w.*"}`, []string{"--limit", "1000", "--forward"}, texts(lines, func(l sentLine) bool { return l.app == "web" })},
		"lines that have":       {`{job="logcli"} |= "ünïcode"`, []string{"--limit", "1000", "--forward"}, texts(lines, has("ünïcode"))},
		"lines that have not":   {`{job="logcli"} != "plain" |~ "n.*1[0-9]"`, []string{"--limit", "1000", "--forward"}, texts(lines, func(l sentLine) bool { return !has("plain")(l) && matches(`n.*1[0-9]`, l.text) })},
		"either":                {`{job="logcli"} |= "plain" or "took"`, []string{"--limit", "1000", "--forward"}, texts(lines, func(l sentLine) bool { return !has("{")(l) })},
		"fields of JSON":        {`{job="logcli"} |= "{" | json | status >= 400`, []string{"--limit", "1000", "--forward"}, texts(lines, func(l sentLine) bool { return has("{")(l) && (has(":400")(l) || has(":500")(l)) })},
		"fields of logfmt":      {`{job="logcli"} |= "took" | logfmt | took > 200ms`, []string{"--limit", "1000", "--forward"}, texts(lines, func(l sentLine) bool { return has("took=2")(l) && matches(`took=2([1-9]\d|0[1-9])ms`, l.text) })},
		"rewritten":             {`{job="logcli"} |= "{" | json | line_format "{{.n}} {{.nested_x}}"`, []string{"--limit", "2", "--forward"}, []string{"0 y", "3 y"}},
		"nothing":               {`{job="logcli"} |= "there is no such line"`, nil, nil},
		"a part of the minutes": {`{job="logcli"}`, []string{"--limit", "1000", "--forward", "--from", lines[100].at.UTC().Format(time.RFC3339Nano), "--to", lines[110].at.UTC().Format(time.RFC3339Nano)}, all[100:110]},
	} {
		t.Run(name, func(t *testing.T) {
			same(t, c.run(t, append([]string{"query", q.query, "-o", "raw"}, q.flags...)...), q.want)
		})
	}
	t.Run("as jsonl", func(t *testing.T) { c.jsonl(t, lines) })
	t.Run("labels", func(t *testing.T) {
		got := c.run(t, "labels")
		for _, want := range []string{"app", "job"} {
			if !slices.Contains(got, want) {
				t.Errorf("no %s in %q", want, got)
			}
		}
		if got := c.run(t, "labels", "app"); !slices.Contains(got, "db") || !slices.Contains(got, "web") {
			t.Errorf("%q", got)
		}
	})
	t.Run("series", func(t *testing.T) {
		got := c.run(t, "series", `{job="logcli"}`)
		if len(got) != 2 || !strings.Contains(strings.Join(got, "\n"), `app="db"`) || !strings.Contains(strings.Join(got, "\n"), `app="web"`) {
			t.Errorf("%q", got)
		}
	})
	t.Run("tail", func(t *testing.T) { c.tail(t) })
	t.Run("an instant query of lines is refused", func(t *testing.T) {
		c.refused(t, "log queries are not supported as an instant query type, please change your query to a range query type", "instant-query", `{job="logcli"}`)
	})
	t.Run("a wrong query is refused", func(t *testing.T) {
		c.refused(t, "parse error at line 1, col 15: syntax error: unexpected IDENTIFIER, expecting } or ,", "query", `{job="logcli" soup}`)
		c.refused(t, "queries require at least one regexp or equality matcher", "query", `{job=~".*"}`)
	})
}

func firstUnequal(got, want []string) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("%d: nothing, want %q", i, want[i])
		case i >= len(want):
			return fmt.Sprintf("%d: %q is one too many", i, got[i])
		case got[i] != want[i]:
			return fmt.Sprintf("%d: %q, want %q", i, got[i], want[i])
		}
	}
	return "none"
}

// jsonl compares times, labels and lines.
func (c logcli) jsonl(t *testing.T, lines []sentLine) {
	got := c.run(t, "query", `{job="logcli"}`, "-o", "jsonl", "--limit", "1000", "--forward", "--include-common-labels")
	if len(got) != len(lines) {
		t.Fatalf("%d lines, want %d", len(got), len(lines))
	}
	for i, text := range got {
		var l struct {
			Labels    map[string]string `json:"labels"`
			Line      string            `json:"line"`
			Timestamp time.Time         `json:"timestamp"`
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if !l.Timestamp.Equal(lines[i].at) || l.Line != lines[i].text || l.Labels["app"] != lines[i].app || l.Labels["job"] != "logcli" ||
			l.Labels["service_name"] != lines[i].app {
			t.Fatalf("line %d is %s, want %+v", i, text, lines[i])
		}
	}
}

// tail follows lines while they are pushed.
func (c logcli) tail(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.program, "--addr", c.url, "--quiet", "query", `{job="logcli",app="tailed"} |= "this"`, "-o", "raw", "--tail")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it was killed
	}()
	got := make(chan string, 1000)
	go func() {
		defer close(got)
		for lines := newLines(out); lines.Scan(); {
			got <- lines.Text()
		}
	}()
	// Lines pushed before it listens may be sent or not, so the first line is repeated until it is seen.
	seen := map[string]int{}
	for i := 0; len(seen) == 0; i++ {
		pushLines(t, c.url, []sentLine{{time.Now(), "tailed", fmt.Sprintf("this is first %d", i)}})
		select {
		case line, ok := <-got:
			if !ok {
				t.Fatalf("logcli ended: %s", complaints.String())
			}
			seen[line]++
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("no line in a minute: %s", complaints.String())
		}
	}
	const each = 50
	for i := range each {
		pushLines(t, c.url, []sentLine{{time.Now(), "tailed", fmt.Sprintf("not that %d", i)}, {time.Now(), "tailed", fmt.Sprintf("this is line %d", i)}, {time.Now(), "web", "this is of another"}})
	}
	next := 0
	for next < each {
		select {
		case line, ok := <-got:
			if !ok {
				t.Fatalf("logcli ended after %d lines: %s", next, complaints.String())
			}
			if strings.HasPrefix(line, "this is first") {
				continue
			}
			if want := fmt.Sprintf("this is line %d", next); line != want {
				t.Fatalf("%q, want %q", line, want)
			}
			next++
		case <-ctx.Done():
			t.Fatalf("%d lines of %d in a minute: %s", next, each, complaints.String())
		}
	}
}

// refused checks that a command fails with a reason.
func (c logcli) refused(t *testing.T, why string, args ...string) {
	t.Helper()
	out, err := exec.Command(c.program, append([]string{"--addr", c.url}, args...)...).CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte(why)) {
		t.Errorf("logcli %q: %v, want %q:\n%s", args, err, why, out)
	}
}
