package relay

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/write/graphite/pickle"
	"github.com/shaledb/shale/internal/write/graphite/route"
)

// wirePoint is a point as tests compare it.
type wirePoint struct {
	Path        string
	Time, Value float64
}

func lotOf(points ...wirePoint) (b []byte) {
	for _, p := range points {
		b = appendPoint(b, point{[]byte(p.Path), int64(p.Time), p.Value})
	}
	return b
}

// TestAsCarbonClient compares what is sent with what the clients of carbon 1.1.10 write: lines by their
// bytes, messages by what is in them.
func TestAsCarbonClient(t *testing.T) {
	questions, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	answers, err := os.ReadFile("testdata/carbon.json")
	if err != nil {
		t.Fatal(err)
	}
	var question struct{ Points [][]any }
	var answer map[string]string
	if err := json.Unmarshal(questions, &question); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(answers, &answer); err != nil {
		t.Fatal(err)
	}
	var points []wirePoint
	for _, p := range question.Points {
		points = append(points, wirePoint{p[0].(string), p[1].(float64), p[2].(float64)})
	}
	for _, protocol := range []route.Protocol{route.Line, route.Pickle, route.Protobuf} {
		want, err := hex.DecodeString(answer[string(protocol)])
		if err != nil || len(want) == 0 {
			t.Fatalf("%s: %d bytes, error %v", protocol, len(want), err)
		}
		got, left, err := encode(nil, protocol, lotOf(points...))
		if err != nil || left != 0 {
			t.Fatalf("%s: %d points are left out, error %v", protocol, left, err)
		}
		switch protocol {
		case route.Line:
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("lines: -carbon +shale\n%s", diff)
			}
		case route.Pickle:
			if diff := cmp.Diff(unpickle(t, want), unpickle(t, got[4:])); diff != "" {
				t.Errorf("pickle: -carbon +shale\n%s", diff)
			}
		case route.Protobuf:
			// Carbon puts the points of a path into one message.
			count := map[wirePoint]int{}
			for _, p := range payload(t, want) {
				count[p]++
			}
			for _, p := range payload(t, got[4:]) {
				count[p]--
			}
			for p, n := range count {
				if n != 0 {
					t.Errorf("protobuf: %d more of %v in what carbon writes", n, p)
				}
			}
		}
	}
}

func unpickle(t *testing.T, b []byte) (points []wirePoint) {
	t.Helper()
	d := pickle.Decoder{Reserve: func(int) error { return nil }}
	v, err := d.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	all := d.Elements(v)
	for one, ok := all.Next(); ok; one, ok = all.Next() {
		pair := d.Elements(one)
		path, _ := pair.Next()
		stamped, _ := pair.Next()
		point := d.Elements(stamped)
		at, _ := point.Next()
		value, _ := point.Next()
		points = append(points, wirePoint{string(d.Text(path)), at.Float(), value.Float()})
	}
	return points
}

// payload decodes a message of carbon.proto.
func payload(t *testing.T, b []byte) (points []wirePoint) {
	t.Helper()
	fields := func(b []byte, fn func(n protowire.Number, typ protowire.Type, b []byte) int) {
		for len(b) > 0 {
			n, typ, k := protowire.ConsumeTag(b)
			if k < 0 {
				t.Fatal(protowire.ParseError(k))
			}
			b = b[k:]
			if k = fn(n, typ, b); k < 0 {
				t.Fatal(protowire.ParseError(k))
			}
			b = b[k:]
		}
	}
	fields(b, func(_ protowire.Number, _ protowire.Type, b []byte) int {
		metric, k := protowire.ConsumeBytes(b)
		path := ""
		fields(metric, func(n protowire.Number, _ protowire.Type, b []byte) int {
			inner, k := protowire.ConsumeBytes(b)
			if n == 1 {
				path = string(inner)
				return k
			}
			p := wirePoint{Path: path}
			fields(inner, func(n protowire.Number, typ protowire.Type, b []byte) int {
				if n == 1 {
					v, k := protowire.ConsumeVarint(b)
					p.Time = float64(v)
					return k
				}
				v, k := protowire.ConsumeFixed64(b)
				p.Value = math.Float64frombits(v)
				return k
			})
			points = append(points, p)
			return k
		})
		return k
	})
	return points
}

func TestValues(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 100: "100", 0.1: "0.1", -2.5: "-2.5", 1e15: "1000000000000000", 1e300: "1e+300", 1e-300: "1e-300",
		math.Inf(1): "inf", math.Inf(-1): "-inf", math.Pi: "3.141592653589793", // carbon sends 3.1415926536
	} {
		if got := string(appendValue(nil, v)); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
}

// TestUnsendable: no point can bring lines of its own, and none can make a carbon close the connection.
func TestUnsendable(t *testing.T) {
	good := wirePoint{"good", 1, 2}
	for _, path := range []string{"a b", "a\nb 1 1", "a\tb", "a\x1cb", "a\u00a0b", "a\u2028b", strings.Repeat("a", lineBytes)} {
		text, left, err := encode(nil, route.Line, lotOf(good, wirePoint{path, 1, 2}, good))
		if err != nil || left != 1 || string(text) != "good 2 1\ngood 2 1\n" {
			t.Errorf("%.20q: %d left out, error %v, text %.60q", path, left, err, text)
		}
	}
	text, left, err := encode(nil, route.Protobuf, lotOf(good, wirePoint{"early", -1, 2}, wirePoint{"late", 1 << 32, 2}))
	if err != nil || left != 2 || len(payload(t, text[4:])) != 1 {
		t.Errorf("protobuf: %d left out, error %v", left, err)
	}
}

// TestFrames: frames have at most 500 points and less than 1 MiB.
func TestFrames(t *testing.T) {
	for _, name := range []string{"short", strings.Repeat("long", 4000)} {
		var points []wirePoint
		for i := range 1234*5/len(name) + 501 {
			points = append(points, wirePoint{name, float64(i), 1})
		}
		text, _, err := encode(nil, route.Pickle, lotOf(points...))
		if err != nil {
			t.Fatal(err)
		}
		var got []wirePoint
		for len(text) > 0 {
			n := binary.BigEndian.Uint32(text)
			frame := unpickle(t, text[4:4+n])
			if n >= 1<<20 || len(frame) > 500 {
				t.Errorf("a frame has %d bytes and %d points", n, len(frame))
			}
			got, text = append(got, frame...), text[4+n:]
		}
		if diff := cmp.Diff(points, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}

// FuzzPoints: what is not a record is refused, and a record is what it says.
func FuzzPoints(f *testing.F) {
	f.Add(lotOf(wirePoint{"a.b;c=d", 1700000000, 1.5}, wirePoint{"", -1, math.Inf(1)}))
	f.Add([]byte{5, 'a'})
	f.Add([]byte{1, 'a', 2, 0, 0})
	f.Fuzz(func(t *testing.T, record []byte) {
		n, err := countPoints(record)
		if err != nil {
			if _, _, err := encode(nil, route.Pickle, record); err == nil {
				t.Error("a record that cannot be counted is sent")
			}
			return
		}
		var again []byte
		for rest := record; len(rest) > 0; {
			var p point
			if p, rest, err = nextPoint(rest); err != nil {
				t.Fatal(err)
			}
			again = appendPoint(again, p)
		}
		if m, err := countPoints(again); m != n || err != nil {
			t.Errorf("%d points became %d, error %v", n, m, err)
		}
		text, left, err := encode(nil, route.Line, record)
		if err != nil || bytes.Count(text, []byte("\n"))+left != n {
			t.Errorf("%d points, %d left out, error %v: %q", n, left, err, text)
		}
	})
}
