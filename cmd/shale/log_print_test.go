package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"testing"

	"github.com/shaledb/shale/internal/client"
)

// printed prints pages of lines in a format.
func printed(t *testing.T, format string, pages ...[]client.Line) string {
	t.Helper()
	var out bytes.Buffer
	p := linePrinter{out: bufio.NewWriter(&out), format: format}
	for _, lines := range pages {
		if err := p.print(lines); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.out.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func lineOf(text string, labels ...string) client.Line {
	l := client.Line{At: 1767225600e9, Labels: map[string]string{}, Text: []byte(text)}
	for i := 0; i < len(labels); i += 2 {
		l.Labels[labels[i]] = labels[i+1]
		l.Stream += labels[i] + "=" + labels[i+1] + ","
	}
	return l
}

// TestCommonLabelsOfLines: labels that all lines have are shown once, and once more when they become fewer.
func TestCommonLabelsOfLines(t *testing.T) {
	page := []client.Line{lineOf("1", "app", "a", "dc", "eu", "level", "info"), lineOf("2", "app", "a", "dc", "eu", "level", "warn", "id", "7")}
	const at = "2026-01-01T00:00:00.000000000Z "
	first := "common labels: {app=\"a\", dc=\"eu\"}\n" + at + "{level=\"info\"} 1\n" + at + "{id=\"7\", level=\"warn\"} 2\n"
	for _, c := range []struct {
		pages [][]client.Line
		want  string
	}{
		{[][]client.Line{nil, page, {}, page[:1]}, first + at + "{level=\"info\"} 1\n"},
		{[][]client.Line{page, {lineOf("3", "app", "a")}, {lineOf("4", "dc", "eu")}, {lineOf("5", "dc", "eu")}},
			first + "common labels: {app=\"a\"}\n" + at + "{} 3\ncommon labels: {}\n" + at + "{dc=\"eu\"} 4\n" + at + "{dc=\"eu\"} 5\n"},
		{[][]client.Line{{lineOf("1", "a", "b"), lineOf("2", "a", "c")}}, at + "{a=\"b\"} 1\n" + at + "{a=\"c\"} 2\n"},
		{[][]client.Line{{lineOf("1")}}, at + "{} 1\n"},
	} {
		if got := printed(t, formatTable, c.pages...); got != c.want {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
	}
	if got := printed(t, formatRaw, page); got != "1\n2\n" {
		t.Errorf("raw: %q", got)
	}
}

// TestLinesOnATerminal: no line can move the cursor or look like two, except in raw.
func TestLinesOnATerminal(t *testing.T) {
	const text = "\x1b[2Jgone\nnext\r\tend\u009b\x7f"
	l := lineOf(text, "app", "\x1b[1m", "b", "x\n")
	if got, want := printed(t, formatTable, []client.Line{l, lineOf("", "app", "")}),
		"2026-01-01T00:00:00.000000000Z {app=\"\\x1b[1m\", b=\"x\\n\"} \\x1b[2Jgone\\nnext\\r\\tend\\u009b\\x7f\n2026-01-01T00:00:00.000000000Z {app=\"\"} \n"; got != want {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	if got := printed(t, formatRaw, []client.Line{l}); got != text+"\n" {
		t.Errorf("raw: %q", got)
	}
	got := printed(t, formatJSONL, []client.Line{l})
	var back struct {
		Labels map[string]string `json:"labels"`
		Line   string            `json:"line"`
	}
	if err := json.Unmarshal([]byte(got), &back); err != nil || back.Line != text || back.Labels["app"] != "\x1b[1m" {
		t.Errorf("%v: %q", err, got)
	}
	for _, c := range []byte(got[:len(got)-1]) {
		if c < ' ' || c >= 0x7f {
			t.Errorf("byte %#x in %q", c, got)
		}
	}
}
