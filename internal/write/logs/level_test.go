package logs

import (
	"strings"
	"testing"
)

func TestLineLevel(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"", "unknown"},
		{"nothing here", "unknown"},
		{"081109 203615 148 INFO dfs.DataNode: x", "info"},
		{"error: it broke", "error"},
		{"it is an Err", "error"},
		{"misc:error", "unknown"},
		{"terror", "unknown"},
		{"errors", "unknown"},
		{"warn first, then error", "warn"},
		{"(WARNING) x", "warn"},
		{"[debug]", "debug"},
		{"trace: fatal", "trace"},
		{"CRITICAL!", "critical"},
		{"xfatal fatal", "fatal"},
		{"'error'", "unknown"},
		{"|error|", "unknown"},
		{"\"error\"", "error"},
		{"İNFO: dotted", "info"},
		{"an \xff info \xfe", "info"},
		// logfmt
		{"level=warn msg=error", "warn"},
		{"LEVEL=WRN", "warn"},
		{"a=b lvl=dbg", "debug"},
		{"lvl=dbg severity=fatal", "fatal"},
		{"severity_text=fatal lvl=info", "info"},
		{"ſeverity=trc", "trace"},
		{"level= info=1", "info"},
		{"level=notice", "unknown"},
		{"level=notice an error", "error"},
		{`msg="a level=info" x`, "info"},
		{`msg="an error" level=info`, "info"},
		{`msg="an \"error\"" level="inf\u006f"`, "info"},
		{`msg="an \x" level=wrn`, "unknown"},
		{`msg="an \x" level=wrn error`, "error"},
		{`a=b=c level=wrn`, "unknown"},
		{`a"b level=wrn`, "unknown"},
		{`a level=info`, "info"},
		{`=a level=wrn`, "unknown"},
		{`a="b"level=info`, "info"},
		{"\xff=1 level=dbg", "unknown"},
		{"level=debug \xff=1", "debug"},
		// JSON
		{`{"level":"WARN"}`, "warn"},
		{`  {"a":1,"Severity":"err"} ` + "\t", "error"},
		{`{"a":{"level":"fatal"}}`, "fatal"},
		{`{"a":{"b":{"level":"trc"}}}`, "unknown"},
		{`{"level":30,"lvl":"info"}`, "info"},
		{`{"a":[{"level":"fatal"}],"x":"y","severity":"trace"}`, "trace"},
		{`{"lev\u0065l":"debug"}`, "debug"},
		{`{"le\u0076el":"debug"}`, "debug"},
		{`{"level":"notice","msg": "error"}`, "error"},
		{`{"msg":"x \"level\":\"error\"","level":"info"}`, "info"},
		{`{"LeVeL":"inf"}`, "unknown"},
		{`{"a":nope,"level":"inf"}`, "unknown"},
		{`{"a":true "level":"inf"}`, "unknown"},
		{`{"a":"b"`, "unknown"},
		{`{} {"level":"inf"}`, "unknown"},
		{`{`, "unknown"},
		{"{\"level\":\"info\"}\xa0", "info"},
	} {
		if got := lineLevel([]byte(c.line)).String(); got != c.want {
			t.Errorf("%q: %s, want %s", c.line, got, c.want)
		}
	}
}

func TestLevelNamesHaveRanks(t *testing.T) {
	for i, name := range LevelNames() {
		if levelRank([]byte(name)) != i {
			t.Errorf("%s has rank %d, want %d", name, levelRank([]byte(name)), i)
		}
		if !mayNameLevel([]byte("{" + name + "}")) {
			t.Errorf("%s is not looked for", name)
		}
	}
}

func FuzzLineLevel(f *testing.F) {
	for _, s := range []string{"", "level=info", `{"a":{"level":"x"}}`, `a="\u00`, "error", "{\"\\", "=", `{"a":[[["`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		l := lineLevel(line)
		if l == none || l >= levels {
			t.Error(l)
		}
		// The shortcut by a letter does not change the result.
		var value []byte
		switch {
		case isJSON(line):
			value, _ = jsonLevel(line, 0)
		case strings.Contains(string(line), "="):
			value = logfmtLevel(line)
		}
		slow := parseLevel(value)
		if slow == none {
			slow = wordLevel(line)
		}
		if slow != l {
			t.Errorf("%s with the shortcut, %s without", l, slow)
		}
	})
}
