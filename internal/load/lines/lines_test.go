package lines

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/load/pace"
)

func testShape() Shape {
	return Shape{Seed: 7, Streams: 50, Pods: 3, PerNode: 12, Lines: 100, Mix: Mix{4, 3, 2, 1}, Windows: 6}
}

func TestLogsShape(t *testing.T) {
	good := testShape()
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(l *Shape){
		"no lines": func(l *Shape) { l.Lines = 0 }, "no streams": func(l *Shape) { l.Streams = 0 }, "no pods": func(l *Shape) { l.Pods = 0 },
		"no mix": func(l *Shape) { l.Mix = Mix{} }, "share": func(l *Shape) { l.Metadata = 2 }, "late by nothing": func(l *Shape) { l.Late.Share = 0.1 },
		"files without windows": func(l *Shape) { l.Files, l.Windows = []File{{Lines: 1}}, 0 },
	} {
		l := testShape()
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
	l := Shape{Seed: 1, Streams: 400, Pods: 5, PerNode: 20, Lines: 4400, Mix: DefaultMix(), Windows: 3}
	var n Mix
	for app := range 20 {
		n[l.format(app)]++
	}
	if n[0] < 9 || n[0] > 11 || n[1] < 5 || n[1] > 7 || n[2] < 3 || n[2] > 5 {
		t.Error(n)
	}
	var c sizeCounter
	l.NewWriter(pace.Timeline{Step: 1e9}).Push(0, 0, &c)
	if c.lines != 4400 || l.PerWindow() != 20*4400 || l.linesOfNode(0) != 4400 {
		t.Error(c, l.PerWindow())
	}
	t.Logf("%d bytes a line", c.bytes/c.lines)
}

// Lines are what they say they are: JSON parses, and the time within is that of the line.
func TestLogLines(t *testing.T) {
	w := (&Shape{Seed: 3, Streams: 8, Pods: 1, PerNode: 8, Lines: 400, Mix: Mix{1, 1, 1, 1}, Windows: 1}).NewWriter(pace.Timeline{Start: 1_700_000_000e9, Step: 60e9})
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
