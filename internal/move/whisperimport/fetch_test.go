package whisperimport

import (
	"bufio"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite/policy"
)

// With a folder that testdata/make.py has filled, TestFetch compares all of its files:
//
//	python testdata/make.py /tmp/w 10000 1700000000
//	go test ./internal/move/whisperimport -run TestFetch -made /tmp/w -now 1700000000
var (
	made    = flag.String("made", "testdata/plain", "a folder of testdata/make.py")
	madeNow = flag.Int64("now", testNow, "the time at which its files were made")
)

// testNow is the time at which the files of testdata were made, in Unix seconds.
const testNow = 1_700_000_000

// fetched is what whisper.fetch returns of each archive of a file.
type fetched struct {
	Name     string
	Archives [][2]int64
	Method   string
	XFF      float64
	Answers  []answer
}

func (f *fetched) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&f.Name, &f.Archives, &f.Method, &f.XFF, &f.Answers})
}

type answer struct {
	First, End, Step int64
	Values           []*float64
}

func (a *answer) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&a.First, &a.End, &a.Step, &a.Values})
}

// expected reads what files should have.
func expected(t *testing.T, dir string, fn func(want *fetched, data []byte)) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "expected.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var want fetched
		if err := json.Unmarshal(lines.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, "whisper", strings.ReplaceAll(want.Name, ".", "/")+suffix))
		if err != nil {
			t.Fatal(err)
		}
		fn(&want, data)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// The rows of an import, under the policy of the file, are what whisper.fetch gives of every archive.
func TestFetch(t *testing.T) {
	files, values, rollups, finest, coarse := 0, 0, 0, 0, 0
	expected(t, *made, func(want *fetched, data []byte) {
		got, err := decode(data, Python, *madeNow)
		if err != nil {
			t.Errorf("%s: %v", want.Name, err)
			return
		}
		rows, n := got.rows(*madeNow)
		files, rollups = files+1, rollups+n
		finest += len(got.archives[0].points)
		for _, a := range got.archives[1:] {
			coarse += len(a.points)
		}
		values += compareFetch(t, want, rows, *madeNow)
	})
	t.Logf("%d files, %d values are the same; %d points, %d rollups for %d coarse points", files, values, finest, rollups, coarse)
	if values == 0 || rollups == 0 {
		t.Error("nothing was compared")
	}
}

// Files that go-whisper has written have the points that it returns. What it has not yet compressed is added
// to the newest slots of coarse archives only when they are read.
func TestCompressed(t *testing.T) {
	points := 0
	expected(t, "testdata/compressed", func(want *fetched, data []byte) {
		got, err := decode(data, Python, testNow)
		if err != nil {
			t.Errorf("%s: %v", want.Name, err)
			return
		}
		for i := range got.archives {
			stored := map[int64]uint64{}
			for _, p := range got.archives[i].points {
				stored[p.at] = p.bits
			}
			a, found, newest := want.Answers[i], 0, 0
			if n := len(got.archives[i].points); n > 0 && i > 0 {
				newest = int(got.archives[i].points[n-1].at)
			}
			for n, x := range a.Values {
				at := a.First + int64(n)*a.Step
				bits, ok := stored[at]
				switch {
				case ok && int(at) == newest:
					found++
				case ok && (x == nil || math.Float64bits(*x) != bits):
					t.Errorf("%s, archive %d: %v at %d, which go-whisper does not return", want.Name, i, math.Float64frombits(bits), at)
				case !ok && x != nil && i == 0:
					t.Errorf("%s: lacks %v at %d", want.Name, *x, at)
				case ok:
					found++
				}
			}
			if found != len(stored) {
				t.Errorf("%s, archive %d: found %d of %d points", want.Name, i, found, len(stored))
			}
			points += found
		}
	})
	if points < 300 {
		t.Errorf("compared %d points", points)
	}
}

func compareFetch(t *testing.T, want *fetched, rows *model.Rows, now int64) (same int) {
	t.Helper()
	p := policy.Policy{XFilesFactor: float32(want.XFF)}
	for _, a := range want.Archives {
		p.Archives = append(p.Archives, policy.Archive{Step: a[0], Points: a[1]})
	}
	var err error
	if p.Method, err = policy.ParseMethod(want.Method); err != nil {
		t.Fatal(err)
	}
	for i, a := range want.Answers {
		w, ok := p.Window(now-p.Archives[i].Retention(), now, now)
		if !ok || w.First != a.First || w.End != a.End || w.Step != a.Step {
			t.Errorf("%s, archive %d: window %+v, whisper %d to %d by %d", want.Name, i, w, a.First, a.End, a.Step)
			continue
		}
		for n, v := range p.Slots(w, rows, nil) {
			if x := a.Values[n]; math.IsNaN(v) != (x == nil) || x != nil && math.Float64bits(*x) != math.Float64bits(v) {
				text := "none"
				if x != nil {
					text = string(mustJSON(t, *x))
				}
				t.Errorf("%s, archive %d, slot %d: %v, whisper %s", want.Name, i, w.First+int64(n)*w.Step, v, text)
				return same
			}
			same++
		}
	}
	return same
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
