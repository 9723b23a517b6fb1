package verify

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/load/lines"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/send"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/load/wire"
)

func testLogs() lines.Shape {
	return lines.Shape{Seed: 7, Streams: 50, Pods: 3, PerNode: 12, Lines: 100, Mix: lines.Mix{4, 3, 2, 1}, Windows: 6}
}

// testPush is a load of an hour of those lines.
func testPush(l lines.Shape, url string) *send.Logs {
	s := pace.Schedule{Timeline: pace.Timeline{Start: 1_700_000_000e9, Step: int64(10 * time.Minute)}, Begin: time.Now(), Rounds: l.Windows}
	return &send.Logs{Logs: l, Schedule: s, FS: vfs.Default, URL: url + "/loki/api/v1/push", Concurrency: 3, Tally: &send.LogsTally{}}
}

func verifyLogs(t *testing.T, url string, state *statefile.State, page int) *Lines {
	t.Helper()
	v := LineVerifier{Server: &client.Server{URL: url, HTTP: testClient()}, State: state, FS: vfs.Default, Page: page, Concurrency: 3}
	out, err := v.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLogsComeBack(t *testing.T) {
	for name, change := range map[string]func(l *send.Logs){
		"plain":    func(*send.Logs) {},
		"json":     func(l *send.Logs) { l.Format = wire.PushJSON },
		"metadata": func(l *send.Logs) { l.Logs.Metadata = 0.5 },
		"disorder": func(l *send.Logs) {
			l.Logs.Late, l.Logs.Twice, l.Logs.Equal = pace.Lateness{Share: 0.2, By: 25 * time.Minute}, 0.3, 0.4
		},
		"all of it": func(l *send.Logs) {
			l.Logs.Late, l.Logs.Twice, l.Logs.Equal, l.Logs.Metadata, l.Format = pace.Lateness{Share: 0.2, By: 25 * time.Minute}, 0.3, 0.4, 0.5, wire.PushJSON
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, url := newLogStore(t)
			l := testPush(testLogs(), url)
			change(l)
			state, report, err := l.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			out := verifyLogs(t, url, state, 64)
			kept := int64(len(store.lines))
			if !out.OK() || out.Equal != kept || out.Streams != 50 || out.Bytes == 0 || report.Acked != report.Sent || kept != l.Logs.PerWindow()*6 {
				t.Errorf("%+v of %d, %d sent", out, kept, report.Sent)
			}
			if twice := l.Logs.Twice > 0; twice != (report.Sent > kept) {
				t.Errorf("%d sent, %d kept", report.Sent, kept)
			}
			needles := map[string]int{}
			for _, l := range store.lines {
				for _, n := range report.Needles {
					if ok, err := regexp.MatchString(n.Text, l.text); err != nil {
						t.Fatal(err)
					} else if ok {
						needles[n.Text]++
					}
				}
			}
			for _, n := range report.Needles {
				if needles[n.Text] != n.Lines {
					t.Errorf("%s stands in %d lines, not in %d", n.Text, needles[n.Text], n.Lines)
				}
			}
			if len(report.Needles) != 3 || report.Needles[0].Lines != lines.RareLines || report.Needles[1].Lines != lines.CodeLines || report.Needles[2].Lines != 0 {
				t.Errorf("%+v", report.Needles)
			}
		})
	}
}

// Each kind of difference is reported, and told from the others.
func TestLogsAmiss(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(s *logStore)
		got  func(v *Lines) int64
	}{
		"missing": {func(s *logStore) { s.lines = s.lines[1:] }, func(v *Lines) int64 { return v.Missing }},
		"doubled": {func(s *logStore) { s.lines = append(s.lines, s.lines[3]) }, func(v *Lines) int64 { return v.Doubled }},
		"wrong":   {func(s *logStore) { s.lines[5].text += " " }, func(v *Lines) int64 { return v.Wrong }},
		"metadata": {func(s *logStore) { s.lines[5].metadata = map[string]string{"a": "b"} },
			func(v *Lines) int64 { return v.Wrong }},
		"extra": {func(s *logStore) { l := s.lines[5]; l.at++; s.lines = append(s.lines, l) }, func(v *Lines) int64 { return v.Extra }},
		"moved": {func(s *logStore) {
			for i := range s.lines {
				for j := range s.lines[:i] {
					if a, b := &s.lines[i], &s.lines[j]; a.at == b.at && a.labels == b.labels {
						*a, *b = *b, *a
						return
					}
				}
			}
		}, func(v *Lines) int64 { return v.Moved }},
	} {
		t.Run(name, func(t *testing.T) {
			store, url := newLogStore(t)
			l := testLogs()
			l.Equal = 0.05
			state, _, err := testPush(l, url).Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c.harm(store)
			out := verifyLogs(t, url, state, 100)
			if out.OK() || c.got(out) != 1 || out.Missing+out.Doubled+out.Wrong+out.Extra+out.Moved+out.Failed != 1 || len(out.Examples) != 1 {
				t.Errorf("%+v", out)
			}
			var text strings.Builder
			if out.WriteText(&text); !strings.Contains(text.String(), "verification FAILED") {
				t.Error(text.String())
			}
		})
	}
}

// Unacknowledged lines may be stored or not; the state file says which lines those are.
func TestLogsUnacknowledged(t *testing.T) {
	store, url := newLogStore(t)
	store.refuse = func(push int) int { return map[int]int{4: 400, 7: 503, 9: 429}[push] }
	dir := t.TempDir()
	l := testPush(testLogs(), url)
	var err error
	if l.State, err = statefile.Create(vfs.Default, filepath.Join(dir, "state"), l.Header()); err != nil {
		t.Fatal(err)
	}
	_, report, err := l.Run(t.Context())
	if err != nil || l.State.Close() != nil {
		t.Fatal(err)
	}
	if report.Dropped == 0 || report.Retries != 2 || report.Acked+report.Dropped != report.Sent || report.Codes["503"] != 1 {
		t.Errorf("%+v", report)
	}
	state, err := statefile.Load(vfs.Default, filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	if out := verifyLogs(t, url, state, 100); !out.OK() || out.Equal != report.Acked || out.Unacked != 0 {
		t.Errorf("%+v", out)
	}
	// A server that responds 400 may have kept a part in spite of that.
	parts := expectedOf(state)
	for _, w := range parts {
		if w.certainty == perhaps {
			ls := strings.Split(strings.TrimSuffix(w.stream, "\x00"), "\x00")
			var labels []lines.Label
			for i := 0; i < len(ls); i += 2 {
				labels = append(labels, lines.Label{Name: ls[i], Value: ls[i+1]})
			}
			store.keep(keptLine{at: w.at, labels: lines.LabelText(labels), text: w.text})
			break
		}
	}
	if out := verifyLogs(t, url, state, 100); !out.OK() || out.Unacked != 1 {
		t.Errorf("%+v", out)
	}
	store.lines = nil
	if out := verifyLogs(t, url, state, 100); out.OK() || out.Missing != report.Acked {
		t.Errorf("%+v", out)
	}
}

// expectedOf lists all lines of a load.
func expectedOf(state *statefile.State) (all []*wantLine) {
	for node := range state.Logs.Nodes() {
		e := newExpected(state, nil, node)
		all = append(all, e.until(e.end())...)
	}
	return all
}

func TestLogsOfNothing(t *testing.T) {
	_, url := newLogStore(t)
	l := testLogs()
	state := statefile.New(statefile.Header{Version: statefile.StateVersion, Timeline: pace.Timeline{Start: 1e18, Step: 1e9}, Logs: &l})
	state.Ended = true
	if out := verifyLogs(t, url, state, 10); out.OK() || !out.Unproven {
		t.Errorf("%+v", out)
	}
}

// The lines of files come back unchanged, whatever they contain.
func TestLogsOfFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.log":     "one\ntwo\r\n\nfour \x00 nul\n\xff\xfe no UTF-8 \xc3\n\"quoted\\\" \u2028 <b>\n" + strings.Repeat("long ", 50_000) + "\nthe last one has no end",
		"b.log":     strings.Repeat("again\n", 500),
		"empty.log": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, size, err := lines.FilesOf(vfs.Default, dir)
	if err != nil || len(files) != 2 || files[0].Lines != 8 || files[1].Lines != 500 || size < 250_000 {
		t.Fatal(files, size, err)
	}
	store, url := newLogStore(t)
	for _, format := range []wire.PushFormat{wire.PushProtobuf, wire.PushJSON} {
		logs := lines.Shape{Seed: 9 + uint64(format), Streams: 2, Pods: 1, PerNode: 1, Lines: 30, Files: files}
		logs.For(3)
		l := testPush(logs, url)
		l.Format = format
		state, report, err := l.Run(t.Context())
		if err != nil || report.Acked != 3*508 {
			t.Fatal(report, err)
		}
		out := verifyLogs(t, url, state, 100)
		if !out.OK() || out.Equal != 3*508 || out.Replaced != 3 {
			t.Errorf("%+v", out)
		}
		if format == wire.PushProtobuf && !store.got("\xff\xfe no UTF-8 \xc3") {
			t.Error("what is no UTF-8 was not sent as it is")
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "b.log"), []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	logs := lines.Shape{Files: files, Lines: 10}
	logs.For(1)
	if _, err := logs.Open(vfs.Default); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Error(err)
	}
}

// TestGoldenLogs keeps what is drawn as it is: a state file must verify with a later build.
func TestGoldenLogs(t *testing.T) {
	l := testLogs()
	l.Metadata, l.Equal, l.Twice, l.Late = 0.3, 0.1, 0.1, pace.Lateness{Share: 0.1, By: time.Hour}
	b := wire.NewPushes(l.NewWriter(pace.Timeline{Start: 1_700_000_000e9, Step: 60e9}), wire.PushJSON)
	sum := crc32.New(statefile.Castagnoli)
	for window := range 6 {
		for node := range l.Nodes() {
			body, _ := b.Fill(window, node)
			sum.Write(body)
		}
	}
	if got := fmt.Sprintf("%08x", sum.Sum32()); got != goldenLogs {
		body, _ := b.Fill(1, 1)
		t.Errorf("%s, want %s; a push is\n%.2000s", got, goldenLogs, body)
	}
}

const goldenLogs = "2ce9661e"
