package policy

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// The recorded cases run in every test. With a Python that has whisper 1.1.10, new random cases are compared:
//
//	go test ./internal/read/graphite/policy -run Whisper -python PATH -cases 20000 -seed 7
//
// and -record writes the first ones to testdata.
var (
	pythonPath  = flag.String("python", "", "a Python with whisper 1.1.10, to compare random cases")
	randomCases = flag.Int("cases", 2000, "how many random cases are compared with -python")
	randomSeed  = flag.Uint64("seed", 1, "of the random cases")
	record      = flag.Bool("record", false, "with -python, write the first cases to testdata")
)

const recordedCases = 60

// whisperCase is what testdata/oracle.py reads, and Answers what it writes.
type whisperCase struct {
	Archives [][2]int64        `json:"archives"`
	Method   string            `json:"method"`
	XFF      float64           `json:"xff"`
	Updates  []whisperUpdate   `json:"updates"`
	Fetches  [][3]int64        `json:"fetches"`
	Answers  []*whisperAnswer  `json:"answers,omitempty"`
	points   map[int64]float64 // the last value of each time
}

type whisperUpdate struct {
	Now    int64
	Points []whisperPoint
}

// whisperPoint has its value as a text, since JSON has no -0 for Python.
type whisperPoint struct {
	Time  int64
	Value float64
}

func (p whisperPoint) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{p.Time, strconv.FormatFloat(p.Value, 'g', -1, 64)})
}

func (p *whisperPoint) UnmarshalJSON(b []byte) error {
	var value string
	err := json.Unmarshal(b, &[]any{&p.Time, &value})
	if err == nil {
		p.Value, err = strconv.ParseFloat(value, 64)
	}
	return err
}

func (u whisperUpdate) MarshalJSON() ([]byte, error) { return json.Marshal([]any{u.Now, u.Points}) }
func (u *whisperUpdate) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&u.Now, &u.Points})
}

type whisperAnswer struct {
	First, End, Step int64
	Values           []*float64
}

func (a whisperAnswer) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{a.First, a.End, a.Step, a.Values})
}
func (a *whisperAnswer) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&a.First, &a.End, &a.Step, &a.Values})
}

func TestWhisperRecorded(t *testing.T) {
	f, err := os.Open("testdata/whisper.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	n := 0
	for ; lines.Scan(); n++ {
		var c whisperCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("line %d: %v", n+1, err)
		}
		c.check(t, fmt.Sprintf("line %d", n+1))
	}
	if n != recordedCases {
		t.Errorf("got %d recorded cases, want %d", n, recordedCases)
	}
}

func TestWhisperLive(t *testing.T) {
	if *pythonPath == "" {
		t.Skip("needs -python")
	}
	cmd := exec.Command(*pythonPath, "testdata/oracle.py")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(out)
	answers.Buffer(nil, 16<<20)
	var recorded []byte
	for n := range *randomCases {
		c := randomCase(rand.New(rand.NewPCG(*randomSeed, uint64(n))))
		question, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write(append(question, '\n')); err != nil {
			t.Fatal(err)
		}
		if !answers.Scan() {
			t.Fatal("oracle.py has ended: ", answers.Err())
		}
		if err := json.Unmarshal(answers.Bytes(), &c.Answers); err != nil {
			t.Fatal(err)
		}
		c.check(t, fmt.Sprintf("seed %d, case %d", *randomSeed, n))
		if line, err := json.Marshal(c); err != nil {
			t.Fatal(err)
		} else if n < recordedCases {
			recorded = append(append(recorded, line...), '\n')
		}
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if *record && !t.Failed() {
		if err := os.WriteFile(filepath.Join("testdata", "whisper.jsonl"), recorded, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// randomCase makes a file that is written as time goes on, and fetches of it. The ring of the finest archive
// holds the points of a coarse slot until the last of them has come, however late: in a shorter ring whisper
// has overwritten the first ones, and makes another coarse point without them.
func randomCase(r *rand.Rand) *whisperCase {
	schemas := [][][2]int64{
		{{60, 20}}, {{10, 12}, {60, 10}}, {{60, 20}, {300, 24}, {3600, 4}}, {{1, 60}, {10, 30}, {60, 20}},
		{{7, 30}, {21, 40}}, {{60, 60}, {120, 100}, {240, 100}, {480, 100}}, {{300, 24}, {3600, 5}},
	}
	xffs := []float64{0, 0, 0.5, 0.5, 0.1, 0.3, 1. / 3, 0.2, 1, 0.7}
	c := &whisperCase{
		Archives: schemas[r.IntN(len(schemas))], Method: methodNames()[r.IntN(len(methodNames()))],
		XFF: xffs[r.IntN(len(xffs))], points: map[int64]float64{},
	}
	step := c.Archives[0][0]
	now := 1_700_000_000 + r.Int64N(100_000)
	begun := now
	skip := r.Float64()
	for range 10 + r.IntN(60) {
		now += 1 + r.Int64N(2*step)
		if r.IntN(15) == 0 {
			now += r.Int64N(20 * step)
		}
		u := whisperUpdate{Now: now}
		for range 1 + r.IntN(3) {
			if t := now - r.Int64N(3*step); r.Float64() > skip/2 {
				u.Points = append(u.Points, whisperPoint{t, randomValue(r)})
			}
		}
		if len(u.Points) > 0 {
			c.add(u)
		}
	}
	oldest := c.Archives[len(c.Archives)-1]
	for range 6 {
		from := now - r.Int64N(min(oldest[0]*oldest[1], now-begun+10*step)+1)
		c.Fetches = append(c.Fetches, [3]int64{from, min(now+5, from+r.Int64N(now-from+1)), now})
	}
	for _, a := range c.Archives {
		c.Fetches = append(c.Fetches, [3]int64{now - a[0]*a[1], now, now})
	}
	return c
}

// add adds an update whose points are in an order of time that their arrival agrees with: whisper keeps the
// point of a slot that came last, and rows have no order but their times.
func (c *whisperCase) add(u whisperUpdate) {
	step := c.Archives[0][0]
	slots := map[int64]bool{}
	var kept []whisperPoint
	for _, p := range u.Points {
		slot := floor(p.Time, step)
		late := slots[slot]
		for t := range c.points {
			late = late || floor(t, step) == slot && t > p.Time
		}
		if late {
			continue
		}
		slots[slot] = true
		kept = append(kept, p)
		c.points[p.Time] = p.Value
	}
	if u.Points = kept; len(kept) > 0 {
		c.Updates = append(c.Updates, u)
	}
}

func randomValue(r *rand.Rand) float64 {
	switch r.IntN(8) {
	case 0:
		return 0
	case 1:
		return math.Copysign(0, -1)
	case 2:
		return -r.Float64() * 100
	case 3:
		return float64(r.IntN(10))
	default:
		return r.NormFloat64() * math.Pow(10, float64(r.IntN(20)-10))
	}
}

// check compares the answers of whisper with what Window and Slots make of the rows.
func (c *whisperCase) check(t *testing.T, at string) {
	t.Helper()
	p := Policy{XFilesFactor: float32(c.XFF)}
	for _, a := range c.Archives {
		p.Archives = append(p.Archives, Archive{a[0], a[1]})
	}
	p.Method, _ = ParseMethod(c.Method)
	var all model.Rows
	for _, u := range c.Updates {
		for _, v := range u.Points {
			all.Append(v.Time*second, math.Float64bits(v.Value), 0)
		}
	}
	all.Normalize()
	for i, f := range c.Fetches {
		want := c.Answers[i]
		w, ok := p.Window(f[0], f[1], f[2])
		if ok != (want != nil) {
			t.Errorf("%s, fetch %v: found %v, whisper %v", at, f, ok, want != nil)
			continue
		}
		if !ok {
			continue
		}
		if w.First != want.First || w.End != want.End || w.Step != want.Step {
			t.Errorf("%s, fetch %v: window %+v, whisper %d to %d by %d", at, f, w, want.First, want.End, want.Step)
			continue
		}
		var rows model.Rows
		for n, at := range all.Times {
			if w.Range().Contains(at) {
				rows.AppendRows(&all, n, n+1)
			}
		}
		for n, v := range p.Slots(w, &rows, nil) {
			if x := want.Values[n]; math.IsNaN(v) != (x == nil) || x != nil && math.Float64bits(*x) != math.Float64bits(v) {
				t.Errorf("%s, fetch %v: %s %v at %d: %v, whisper %v", at, f, c.Method, c.Archives, w.First+int64(n)*w.Step, v, text(x))
			}
		}
	}
}

func text(v *float64) string {
	if v == nil {
		return "none"
	}
	return fmt.Sprint(*v)
}
