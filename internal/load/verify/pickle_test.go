package verify

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/load/wire"
)

type pickled struct {
	name    string
	seconds int64
	value   float64
}

// unpickle reads a list of (name, (time, value)), as far as this package writes one; python3 is asked whether
// it does so in TestPickleIsPythons.
func unpickle(b []byte) []pickled {
	var stack []any
	pop := func() any { x := stack[len(stack)-1]; stack = stack[:len(stack)-1]; return x }
	type mark struct{}
	for at := 0; ; {
		op := b[at]
		at++
		switch op {
		case 0x80, 'q': // protocol, remember
			at++
		case 'r': // remember under four bytes
			at += 4
		case ']':
			stack = append(stack, []pickled(nil))
		case '(':
			stack = append(stack, mark{})
		case 'X':
			n := int(binary.LittleEndian.Uint32(b[at:]))
			stack = append(stack, string(b[at+4:at+4+n]))
			at += 4 + n
		case 'K':
			stack = append(stack, int64(b[at]))
			at++
		case 'M':
			stack = append(stack, int64(binary.LittleEndian.Uint16(b[at:])))
			at += 2
		case 'J':
			stack = append(stack, int64(int32(binary.LittleEndian.Uint32(b[at:]))))
			at += 4
		case 0x8a:
			var v int64
			for i := range int(b[at]) {
				v |= int64(b[at+1+i]) << (8 * i)
			}
			stack = append(stack, v)
			at += 1 + int(b[at])
		case 'G':
			stack = append(stack, math.Float64frombits(binary.BigEndian.Uint64(b[at:])))
			at += 8
		case 0x86:
			second, first := pop(), pop()
			if v, ok := second.(float64); ok {
				stack = append(stack, pickled{seconds: first.(int64), value: v})
			} else {
				p := second.(pickled)
				p.name = first.(string)
				stack = append(stack, p)
			}
		case 'a':
			p := pop().(pickled)
			stack = append(stack, append(pop().([]pickled), p))
		case 'e':
			var items []pickled
			for {
				x := pop()
				if _, ok := x.(mark); ok {
					break
				}
				items = append([]pickled{x.(pickled)}, items...)
			}
			stack = append(stack, append(pop().([]pickled), items...))
		case '.':
			return pop().([]pickled)
		default:
			panic(fmt.Sprintf("opcode %q", op))
		}
	}
}

// messages cuts a stream into messages.
func messages(t tester, stream []byte) [][]byte {
	t.Helper()
	var out [][]byte
	for len(stream) > 0 {
		n := int(binary.BigEndian.Uint32(stream))
		if n > 1<<20 { // what carbon takes by default
			t.Fatalf("message of %d bytes", n)
		}
		out = append(out, stream[4:4+n])
		stream = stream[4+n:]
	}
	return out
}

func pickleAgents(agents, metrics int) *fleet.Agents {
	return &fleet.Agents{Seed: 7, Prefix: "a.b", Agents: agents, Metrics: metrics, Connections: 1, Value: values.Gauge, Protocol: fleet.Pickle}
}

// TestPickleIsPythons compares messages byte for byte with those of Python's own pickle, which loads them
// first.
func TestPickleIsPythons(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here; the golden file of TestPickleGolden was made with it")
	}
	const script = `
import pickle, sys, struct
while True:
    head = sys.stdin.buffer.read(4)
    if not head: break
    body = sys.stdin.buffer.read(struct.unpack('>I', head)[0])
    points = pickle.loads(body)
    if pickle.dumps([(str(n), (int(t), float(v))) for n, (t, v) in points], protocol=2) != body: sys.exit('bytes differ')
    for n, (t, v) in points: print(n, t, repr(v))
`
	a := pickleAgents(3, 400)
	var stream []byte
	want := ""
	for _, start := range []int64{100, 60_000, 1_700_000_000, 5_000_000_000, 40_000_000_000} {
		l := wire.NewPoints(a, 0, pace.Timeline{Start: start * 1e9, Step: 10e9})
		for l.Round == 0 {
			stream, _ = l.Fill(stream, 1000, 1<<20, true)
		}
		l = wire.NewPoints(a, 0, pace.Timeline{Start: start * 1e9, Step: 10e9})
		stream, _ = l.Fill(stream, 1, 1<<20, true)
	}
	for _, m := range messages(t, stream) {
		for _, p := range unpickle(m) {
			want += fmt.Sprintf("%s %d %v\n", p.name, p.seconds, p.value)
		}
	}
	cmd := exec.Command(python, "-c", script)
	cmd.Stdin = bytes.NewReader(stream)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	got := ""
	for line := range strings.Lines(string(out)) {
		var p pickled
		if _, err := fmt.Sscanf(line, "%s %d %v", &p.name, &p.seconds, &p.value); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		got += fmt.Sprintf("%s %d %v\n", p.name, p.seconds, p.value)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPickleGolden(t *testing.T) {
	l := wire.NewPoints(pickleAgents(2, 2), 0, pace.Timeline{Start: 1_700_000_000e9, Step: 10e9})
	got, _ := l.Fill(nil, 3, 1<<20, true)
	got, _ = l.Fill(got, 3, 1<<20, true)
	golden(t, "pickle.golden", hex.Dump(got))
}

// TestPicklesInOrder: cut into messages of any size, the points of connections are those of lines.
func TestPicklesInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := pickleAgents(rapid.IntRange(1, 5).Draw(t, "agents"), rapid.IntRange(1, 900).Draw(t, "metrics"))
		a.Connections = rapid.IntRange(1, a.Agents).Draw(t, "connections")
		full, most := rapid.IntRange(1, 50_000).Draw(t, "full"), rapid.IntRange(1, 2000).Draw(t, "most")
		whole := rapid.Bool().Draw(t, "whole")
		plain := *a
		plain.Protocol = fleet.Plain
		for c := range a.Connections {
			l, lines := wire.NewPoints(a, c, pace.Timeline{Start: 1_000e9, Step: 10e9}), wire.NewPoints(&plain, c, pace.Timeline{Start: 1_000e9, Step: 10e9})
			for l.Round < 2 {
				agent := l.Agent
				buf, n := l.Fill(nil, most, full, whole)
				var points []pickled
				last := 0
				for i, m := range messages(t, buf) {
					one := unpickle(m)
					points = append(points, one...)
					last += 4 + len(m)
					if len(one) > wire.PickleBatch || l.Frames[i] != (wire.Frame{End: last, Points: len(one)}) {
						t.Fatalf("message %d of %d points: %+v", i, len(one), l.Frames[i])
					}
				}
				if len(points) != n || n == 0 || n > most || l.Arrived(buf) != n || l.Arrived(buf[:len(buf)-1]) != n-l.Frames[len(l.Frames)-1].Points {
					t.Fatalf("%d points, said %d", len(points), n)
				}
				for _, p := range points {
					if !whole && !strings.Contains(p.name, fmt.Sprintf(".agent.%d.", agent)) {
						t.Fatalf("agent %d: %s", agent, p.name)
					}
					want, _ := lines.Fill(nil, 1, 1, true)
					if got := fmt.Sprintf("%s %s %d\n", p.name, trimmed(p.value), p.seconds); got != string(want) {
						t.Fatalf("%q, want %q", got, want)
					}
				}
			}
		}
	})
}

func trimmed(v float64) string { return fmt.Sprintf("%.3f", v) }
