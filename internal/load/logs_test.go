package load

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/alloctest"
)

func testLogs() Logs {
	return Logs{Seed: 7, Streams: 50, Pods: 3, PerNode: 12, Lines: 100, Mix: Mix{4, 3, 2, 1}, Windows: 6}
}

// testPush is a load of an hour of those lines.
func testPush(l Logs, url string) *LogPush {
	s := Schedule{Timeline: Timeline{Start: 1_700_000_000e9, Step: int64(10 * time.Minute)}, begin: time.Now(), rounds: l.Windows}
	return &LogPush{Logs: l, Schedule: s, FS: vfs.Default, URL: url + "/loki/api/v1/push", Concurrency: 3, Tally: &Tally{}}
}

func verifyLogs(t *testing.T, url string, state *State, page int) *LogVerification {
	t.Helper()
	v := LogVerifier{Reader: Reader{URL: url, Client: testClient()}, State: state, FS: vfs.Default, Page: page, Concurrency: 3}
	out, err := v.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLogsComeBack(t *testing.T) {
	for name, change := range map[string]func(l *LogPush){
		"plain":    func(*LogPush) {},
		"json":     func(l *LogPush) { l.Format = LogJSON },
		"metadata": func(l *LogPush) { l.Logs.Metadata = 0.5 },
		"disorder": func(l *LogPush) {
			l.Logs.Late, l.Logs.Twice, l.Logs.Equal = Lateness{0.2, 25 * time.Minute}, 0.3, 0.4
		},
		"all of it": func(l *LogPush) {
			l.Logs.Late, l.Logs.Twice, l.Logs.Equal, l.Logs.Metadata, l.Format = Lateness{0.2, 25 * time.Minute}, 0.3, 0.4, 0.5, LogJSON
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
			if !out.OK() || out.Equal != kept || out.Streams != 50 || out.Bytes == 0 || report.Acked != report.Sent || kept != l.Logs.perWindow()*6 {
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
			if len(report.Needles) != 3 || report.Needles[0].Lines != rareLines || report.Needles[1].Lines != codeLines || report.Needles[2].Lines != 0 {
				t.Errorf("%+v", report.Needles)
			}
		})
	}
}

// Everything that a server can do wrong is told, and told apart.
func TestLogsAmiss(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(s *logStore)
		got  func(v *LogVerification) int64
	}{
		"missing": {func(s *logStore) { s.lines = s.lines[1:] }, func(v *LogVerification) int64 { return v.Missing }},
		"doubled": {func(s *logStore) { s.lines = append(s.lines, s.lines[3]) }, func(v *LogVerification) int64 { return v.Doubled }},
		"wrong":   {func(s *logStore) { s.lines[5].text += " " }, func(v *LogVerification) int64 { return v.Wrong }},
		"metadata": {func(s *logStore) { s.lines[5].metadata = map[string]string{"a": "b"} },
			func(v *LogVerification) int64 { return v.Wrong }},
		"extra": {func(s *logStore) { l := s.lines[5]; l.at++; s.lines = append(s.lines, l) }, func(v *LogVerification) int64 { return v.Extra }},
		"moved": {func(s *logStore) {
			for i := range s.lines {
				for j := range s.lines[:i] {
					if a, b := &s.lines[i], &s.lines[j]; a.at == b.at && a.labels == b.labels {
						*a, *b = *b, *a
						return
					}
				}
			}
		}, func(v *LogVerification) int64 { return v.Moved }},
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
			if err := (&Report{Lines: out}).WriteText(&text); err != nil || !strings.Contains(text.String(), "verification FAILED") {
				t.Error(err, text.String())
			}
		})
	}
}

// Lines that nobody acknowledged may be there or not; the state file says which those are.
func TestLogsUnacknowledged(t *testing.T) {
	store, url := newLogStore(t)
	store.refuse = func(push int) int { return map[int]int{4: 400, 7: 503, 9: 429}[push] }
	dir := t.TempDir()
	l := testPush(testLogs(), url)
	var err error
	if l.State, err = CreateState(vfs.Default, filepath.Join(dir, "state"), l.Header()); err != nil {
		t.Fatal(err)
	}
	_, report, err := l.Run(t.Context())
	if err != nil || l.State.Close() != nil {
		t.Fatal(err)
	}
	if report.Dropped == 0 || report.Retries != 2 || report.Acked+report.Dropped != report.Sent || report.Codes["503"] != 1 {
		t.Errorf("%+v", report)
	}
	state, err := LoadState(vfs.Default, filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	if out := verifyLogs(t, url, state, 100); !out.OK() || out.Equal != report.Acked || out.Unacked != 0 {
		t.Errorf("%+v", out)
	}
	// Whoever answered 400 may have kept a part all the same.
	parts := expectedOf(state)
	for _, w := range parts {
		if w.standing == perhaps {
			ls := strings.Split(strings.TrimSuffix(w.stream, "\x00"), "\x00")
			var labels []logLabel
			for i := 0; i < len(ls); i += 2 {
				labels = append(labels, logLabel{ls[i], ls[i+1]})
			}
			store.keep(keptLine{at: w.at, labels: labelText(labels), text: w.text})
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
func expectedOf(state *State) (all []*wantLine) {
	for node := range state.Logs.nodes() {
		e := newExpected(state, nil, node)
		all = append(all, e.until(e.end())...)
	}
	return all
}

func TestLogsOfNothing(t *testing.T) {
	_, url := newLogStore(t)
	l := testLogs()
	state := newState(Header{Version: stateVersion, Timeline: Timeline{Start: 1e18, Step: 1e9}, Logs: &l})
	state.Ended = true
	if out := verifyLogs(t, url, state, 10); out.OK() || !out.Unproven {
		t.Errorf("%+v", out)
	}
}

// The lines of files come back as they are, whatever they are.
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
	files, size, err := FilesOf(vfs.Default, dir)
	if err != nil || len(files) != 2 || files[0].Lines != 8 || files[1].Lines != 500 || size < 250_000 {
		t.Fatal(files, size, err)
	}
	store, url := newLogStore(t)
	for _, format := range []LogFormat{LogProtobuf, LogJSON} {
		logs := Logs{Seed: 9 + uint64(format), Streams: 2, Pods: 1, PerNode: 1, Lines: 30, Files: files}
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
		if format == LogProtobuf && !store.got("\xff\xfe no UTF-8 \xc3") {
			t.Error("what is no UTF-8 was not sent as it is")
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "b.log"), []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	logs := Logs{Files: files, Lines: 10}
	logs.For(1)
	if _, err := logs.open(vfs.Default); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Error(err)
	}
}

func TestLogsShape(t *testing.T) {
	good := testLogs()
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(l *Logs){
		"no lines": func(l *Logs) { l.Lines = 0 }, "no streams": func(l *Logs) { l.Streams = 0 }, "no pods": func(l *Logs) { l.Pods = 0 },
		"no mix": func(l *Logs) { l.Mix = Mix{} }, "share": func(l *Logs) { l.Metadata = 2 }, "late by nothing": func(l *Logs) { l.Late.Share = 0.1 },
		"files without windows": func(l *Logs) { l.Files, l.Windows = []LogFile{{Lines: 1}}, 0 },
	} {
		l := testLogs()
		if spoil(&l); l.Check() == nil {
			t.Errorf("%s is taken", name)
		}
	}
	var m Mix
	for _, text := range []string{"", "json", "json=0", "soup=1", "json=-1,text=3"} {
		if m.UnmarshalText([]byte(text)) == nil {
			t.Errorf("mix %q is taken", text)
		}
	}
	// The share of each format among apps is about its weight, and each has the lines that its weight promises.
	l := Logs{Seed: 1, Streams: 400, Pods: 5, PerNode: 20, Lines: 4400, Mix: DefaultMix(), Windows: 3}
	var n Mix
	for app := range 20 {
		n[l.format(app)]++
	}
	if n[0] < 9 || n[0] > 11 || n[1] < 5 || n[1] > 7 || n[2] < 3 || n[2] > 5 {
		t.Error(n)
	}
	var c counter
	l.writer(Timeline{Step: 1e9}).push(0, 0, &c)
	if c.lines != 4400 || l.perWindow() != 20*4400 || l.linesOfNode(0) != 4400 {
		t.Error(c, l.perWindow())
	}
	t.Logf("%d bytes a line", c.bytes/c.lines)
}

// Lines are what they say they are: JSON parses, and the time within is that of the line.
func TestLogLines(t *testing.T) {
	w := (&Logs{Seed: 3, Streams: 8, Pods: 1, PerNode: 8, Lines: 400, Mix: Mix{1, 1, 1, 1}, Windows: 1}).writer(Timeline{Start: 1_700_000_000e9, Step: 60e9})
	for format := range len(formatNames) {
		for i := range 200 {
			at := int64(1_700_000_000e9) + int64(i)*1_234_567_891
			w.clock.set(at)
			line := string(w.text(nil, format, i%4, " needle"))
			stamp := time.Unix(0, at).UTC().Format("2006-01-02T15:04:05.000")
			switch format {
			case formatJSON:
				var fields map[string]any
				if err := json.Unmarshal([]byte(line), &fields); err != nil || fields["ts"] != stamp+"Z" || fields["level"] != levels[i%4].name {
					t.Fatal(line, err)
				}
			case formatAccess:
				stamp = time.Unix(0, at).UTC().Format("02/Jan/2006:15:04:05 +0000")
			case formatText:
				stamp = time.Unix(0, at).UTC().Format("2006-01-02 15:04:05") + ","
			}
			if !strings.Contains(line, stamp) || strings.Count(line, " needle") != 1 {
				t.Fatal(line)
			}
		}
	}
}

// TestGoldenLogs keeps what is drawn as it is: a state file must verify with a later build.
func TestGoldenLogs(t *testing.T) {
	l := testLogs()
	l.Metadata, l.Equal, l.Twice, l.Late = 0.3, 0.1, 0.1, Lateness{0.1, time.Hour}
	b := newLogBody(l.writer(Timeline{Start: 1_700_000_000e9, Step: 60e9}), LogJSON)
	sum := crc32.New(castagnoli)
	for window := range 6 {
		for node := range l.nodes() {
			body, _ := b.fill(window, node)
			sum.Write(body)
		}
	}
	if got := fmt.Sprintf("%08x", sum.Sum32()); got != goldenLogs {
		body, _ := b.fill(1, 1)
		t.Errorf("%s, want %s; a push is\n%.2000s", got, goldenLogs, body)
	}
}

const goldenLogs = "2ce9661e"

func TestFillLogsDoesNotAllocate(t *testing.T) {
	l := Logs{Seed: 1, Streams: 400, Pods: 5, PerNode: 20, Lines: 500, Mix: DefaultMix(), Windows: 1000, Late: Lateness{0.1, time.Hour}, Twice: 0.1, Equal: 0.1}
	for _, format := range []LogFormat{LogProtobuf, LogJSON} {
		b, window := newLogBody(l.writer(Timeline{Step: 60e9}), format), 0
		for range 50 {
			window++
			b.fill(window, 3)
		}
		alloctest.AtMost(t, 1, 100, func() { window++; b.fill(window, 3) })
	}
}

// BenchmarkLogs is the generator's CPU budget: at most 2 s for a GB of lines, with all else that sends them. To search lines for what
// they have in common takes 1 s of it, which is why their seams are known.
func BenchmarkLogs(b *testing.B) {
	for name, format := range map[string]LogFormat{"protobuf": LogProtobuf, "json": LogJSON} {
		b.Run(name, func(b *testing.B) {
			l := Logs{Seed: 1, Streams: 400, Pods: 5, PerNode: 20, Lines: 4400, Mix: DefaultMix(), Windows: 1000}
			body := newLogBody(l.writer(Timeline{Start: 1_700_000_000e9, Step: 60e9}), format)
			var bytes, sent int64
			cpu := usedCPU() // time on a clock says little while others use the machine
			for i := 0; b.Loop(); i++ {
				zipped, _ := body.fill(i/20, i%20)
				bytes += body.bytes
				sent += int64(len(zipped))
			}
			b.ReportMetric((usedCPU()-cpu).Seconds()/float64(bytes)*1e9, "cpu-s/GB")
			b.ReportMetric(float64(sent)/float64(bytes), "wire/raw")
		})
	}
}
