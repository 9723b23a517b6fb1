//go:build e2e

package badinput

import (
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// frame puts the length before a pickle.
func frame(p string) string { return string(binary.BigEndian.AppendUint32(nil, uint32(len(p)))) + p }

func text(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

func number(v float64) string {
	return "G" + string(binary.BigEndian.AppendUint64(nil, math.Float64bits(v)))
}

// point is an item of a pickle: a path, and a pair of time and value, all as opcodes.
func point(path, stamp, value string) string { return path + stamp + value + "\x86\x86" }

func nowOp() string { return number(float64(time.Now().Unix())) }

func list(items ...string) string { return "\x80\x02](" + strings.Join(items, "") + "e." }

func goodPickle(name string) string { return frame(list(point(text(name), nowOp(), number(1)))) }

var lostPickle = regexp.MustCompile(`msg="pickle lost: (\w+)" peer=\S+ error=("(?:[^"\\]|\\.)*"|\S+)`)

// sendPickles sends text to the pickle port and returns how many points were stored, and what the log says.
func sendPickles(send func(t *testing.T, c *net.TCPConn)) func(*testing.T, *server) (string, string) {
	return func(t *testing.T, s *server) (string, string) {
		at := 0
		outcome, said := byGraphite(func(t *testing.T, s *server) {
			at = s.logSize()
			conn, err := net.Dial("tcp", s.pickleAddr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			send(t, conn.(*net.TCPConn))
		})(t, s)
		if m := lostPickle.FindStringSubmatch(s.logSince(at)); m != nil {
			why, err := strconv.Unquote(m[2])
			if err != nil {
				why = m[2]
			}
			said = m[1] + ": " + why
		}
		return strings.Replace(outcome, "lines", "points", 1), said
	}
}

// picklePayloads are complete bad frames; a good frame follows each on the same connection.
func picklePayloads() [][2]string {
	deep := func(open, shut string, n int) string {
		return "\x80\x02" + strings.Repeat(open, n) + strings.Repeat(shut, n-1) + "."
	}
	le4 := func(n uint32) string { return string(binary.LittleEndian.AppendUint32(nil, n)) }
	le8 := func(n uint64) string { return string(binary.LittleEndian.AppendUint64(nil, n)) }
	now := nowOp()
	p := [][2]string{
		{"a frame of no bytes", ""},
		{"text", "bi.text 1 1700000000\n"},
		{"JSON", `[["bi.json",[1700000000,1]]]`},
		{"random bytes", "\xf1\xe2\xd3\xc4\xb5\xa6\x97\x88\x79\x6a\x5b\x4c\x3d\x2e"},
		{"zeros", strings.Repeat("\x00", 1000)},
		{"STOP alone", "."},
		{"a protocol header alone", "\x80\x02"},
		{"protocol 6", "\x80\x06]."},
		{"protocol 255", "\x80\xff]."},
		{"no STOP", strings.TrimSuffix(list(point(text("bi.p"), now, number(1))), ".")},
		{"bytes after STOP", list(point(text("bi.behind"), now, number(1))) + "xx"},
		{"two values on the stack", "\x80\x02]]."},
		{"an empty list", "\x80\x02]."},
		{"None", "N."}, {"a number", "K\x05."}, {"a text", text("bi.p") + "."}, {"a dictionary", "}."}, {"a set", "\x80\x04\x8f."},
		{"GLOBAL os.system and REDUCE", "cos\nsystem\n(S'id'\ntR."},
		{"STACK_GLOBAL", "\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R."},
		{"INST", "(S'id'\nios\nsystem\n."},
		{"OBJ", "(cos\nsystem\nS'id'\no."},
		{"BUILD", "]}b."},
		{"NEWOBJ", "cfoo\nBar\n)\x81."},
		{"NEWOBJ_EX", "\x80\x04cfoo\nBar\n)}\x92."},
		{"EXT1", "\x82\x01."}, {"EXT4", "\x84\x01\x00\x00\x00."},
		{"PERSID", "Pid\n."}, {"BINPERSID", "K\x01Q."},
		{"NEXT_BUFFER", "\x80\x05\x97."}, {"READONLY_BUFFER", "\x80\x05K\x01\x98."}, {"BYTEARRAY8", "\x80\x05\x96" + le8(1) + "x."},
		{"REDUCE of a text", text("a") + ")R."},
		{"a datetime as the time", list(point(text("bi.p"), "cdatetime\ndatetime\n(K\x01tR", number(1)))},
		{"a Decimal as the value", list(point(text("bi.p"), now, "cdecimal\nDecimal\n(S'1'\ntR"))},
		{"POP on an empty stack", "0."}, {"DUP on an empty stack", "2."}, {"a MARK that is never used", "(."}, {"APPENDS without MARK", "]e."},
		{"APPEND to a text", text("a") + "K\x01a."}, {"TUPLE3 of two", "K\x01K\x02\x87."},
		{"GET of nothing", "g7\n."}, {"BINGET of nothing", "h\x07."}, {"GET -1", "g-1\n."}, {"PUT on an empty stack", "p0\n."},
		{"LONG_BINPUT 4294967295", "]r\xff\xff\xff\xff."}, {"PUT of a number of 10,000 digits", "]p" + strings.Repeat("9", 10000) + "\n."},
		{"a list in itself", "]q\x00h\x00a."},
		{"31 nested lists", deep("]", "a", 31)}, {"100,000 nested lists", deep("]", "a", 100_000)},
		{"100,000 nested tuples", "\x80\x02K\x01" + strings.Repeat("\x85", 100_000) + "."},
		{"900,000 MARKs", strings.Repeat("(", 900_000) + "."}, {"900,000 empty lists", "(" + strings.Repeat("]", 900_000) + "l."},
		{"300,000 memoized empty lists", "(" + strings.Repeat("]\x94", 300_000) + "l."},
		{"a memo bomb: 30 lists, each 10 times the one before", memoBomb(30)},
		{"a memo bomb of 800,000 references to one point", "\x80\x02](" + point(text("bi.p"), now, number(1)) + "q\x01" + strings.Repeat("h\x01", 400_000) + "e."},
		{"DUP 900,000 times", "]" + strings.Repeat("2", 900_000) + "."},
		{"a text of 4 GB announced", "X\xff\xff\xff\xffabc."}, {"a text of 2^63 bytes announced", "\x80\x04\x8d" + le8(1<<63) + "abc."},
		{"a string of -1 bytes", "T\xff\xff\xff\xffabc."}, {"a frame opcode of 2^63", "\x80\x04\x95" + le8(1<<63) + "]."},
		{"a frame opcode that is too short", "\x80\x04\x95" + le8(1) + list(point(text("bi.short"), now, number(1)))[2:]},
		{"LONG4 of -1 bytes", "\x8b\xff\xff\xff\xff."}, {"LONG4 of 2 GB", "\x8b\xff\xff\xff\x7f."},
		{"LONG4 of 500,000 bytes as the value", list(point(text("bi.p"), now, "\x8b"+le4(500_000)+strings.Repeat("\x7f", 500_000)))},
		{"LONG of 500,000 digits as the value", list(point(text("bi.p"), now, "L"+strings.Repeat("9", 500_000)+"L\n"))},
		{"INT that is a word", "(Ihigh\nl."}, {"FLOAT that is a word", "(Fhigh\nl."}, {"LONG without digits", "(LL\nl."},
		{"STRING without quotes", "(Sabc\nl."}, {"STRING with a bad escape", `(S'\xzz'` + "\nl."}, {"UNICODE with a bad escape", `(V\uzzzz` + "\nl."},
		{"invalid UTF-8 in a text", "(" + text("\xff\xfe") + "l."},
	}
	for _, c := range [][2]string{
		{"a point that is a number", "K\x01"}, {"a point of one", "K\x01\x85"}, {"a point of three", text("bi.p") + now + number(1) + "\x87"},
		{"a path that is a number", point("K\x01", now, number(1))}, {"a path that is None", point("N", now, number(1))},
		{"an empty path", point(text(""), now, number(1))}, {"a path of 20,000 bytes", point(text(strings.Repeat("n", 20_000)), now, number(1))},
		{"a path with invalid UTF-8", point("U\x03a\xff\xfe", now, number(1))}, {"a path with a bad tag", point(text("bi.p;a"), now, number(1))},
		{"a path with 1,000 tags", point(text("bi.p"+manyTags(1000)), now, number(1))},
		{"value None", point(text("bi.p"), now, "N")}, {"value a word", point(text("bi.p"), now, text("high"))}, {"value NaN", point(text("bi.p"), now, number(math.NaN()))},
		{"value an infinity", point(text("bi.pinf"), now, number(math.Inf(1)))}, {"value a list", point(text("bi.p"), now, "]")},
		{"value a boolean", point(text("bi.pbool"), now, "\x88")},
		{"time NaN", point(text("bi.p"), number(math.NaN()), number(1))}, {"time 1e300", point(text("bi.p"), number(1e300), number(1))},
		{"time in milliseconds", point(text("bi.p"), number(1.79e12), number(1))}, {"time 0", point(text("bi.p"), "K\x00", number(1))},
		{"time of 500,000 digits", point(text("bi.p"), text(strings.Repeat("9", 500_000)), number(1))},
	} {
		p = append(p, [2]string{c[0], list(c[1])})
	}
	return p
}

// memoBomb is a pickle whose value has 10^n elements when its references are followed.
func memoBomb(n int) string {
	var sb strings.Builder
	sb.WriteString("\x80\x02]q\x00")
	for i := range n {
		fmt.Fprintf(&sb, "(%sl%c%c", strings.Repeat(fmt.Sprintf("h%c", rune(i)), 10), 'q', rune(i+1))
	}
	return sb.String() + "."
}

func pickles() group {
	g := group{file: "graphite-pickle", title: "Graphite pickles"}
	for _, p := range picklePayloads() {
		g.attacks = append(g.attacks, attack{input: p[0], do: sendPickles(func(_ *testing.T, c *net.TCPConn) {
			write(c, frame(p[1])+goodPickle("bi.after.pickle"))
		})})
	}
	stream := func(input, send string) {
		g.attacks = append(g.attacks, attack{input: input, do: sendPickles(func(_ *testing.T, c *net.TCPConn) { write(c, send) })})
	}
	stream("a length of 0xffffffff", "\xff\xff\xff\xff]."+goodPickle("bi.never"))
	stream("a length of 16 MiB", "\x01\x00\x00\x00"+strings.Repeat("]", 100))
	stream("Graphite lines", "bi.line 1 1700000000\n")
	stream("an HTTP request", "GET / HTTP/1.1\r\nHost: shale\r\n\r\n")
	stream("a TLS hello", "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03")
	stream("two bytes of a length", "\x00\x00")
	stream("half a frame after a good one", goodPickle("bi.half.pickle")+goodPickle("bi.never")[:20])
	stream("a frame of 900,000 bytes of which ten come", "\x00\x0d\xbb\xa0\x80\x02]]]]]]]]")
	stream("200,000 frames of no bytes, then a good one", strings.Repeat("\x00\x00\x00\x00", 200_000)+goodPickle("bi.after.empty"))
	stream("20,000 bad frames, then a good one", strings.Repeat(frame("cos\nsystem\n."), 20_000)+goodPickle("bi.after.bad"))
	g.attacks = append(g.attacks, attack{input: "good points around a bad one", do: sendPickles(func(_ *testing.T, c *net.TCPConn) {
		write(c, frame(list(point(text("bi.p1"), nowOp(), number(1)), "N", point(text("bi.p2"), nowOp(), number(1)))))
	})})
	g.attacks = append(g.attacks, attack{input: "a byte at a time", do: sendPickles(func(_ *testing.T, c *net.TCPConn) {
		for _, b := range []byte(goodPickle("bi.slow.pickle")) {
			write(c, string([]byte{b}))
			time.Sleep(2 * time.Millisecond)
		}
	})})
	g.attacks = append(g.attacks, attack{input: "a connection that is reset inside a frame", do: func(t *testing.T, s *server) (string, string) {
		return sendPickles(func(t *testing.T, c *net.TCPConn) {
			name := "shale_graphite_pickles_total"
			before := s.counters(t)[name]
			write(c, goodPickle("bi.reset.pickle")+goodPickle("bi.never")[:20])
			// Bytes that have not been read when a connection is reset are lost.
			for began := time.Now(); s.counters(t)[name] == before && time.Since(began) < 10*time.Second; {
				time.Sleep(10 * time.Millisecond)
			}
			_ = c.SetLinger(0)
		})(t, s)
	}})
	for i := range g.attacks {
		g.attacks[i].anywhere = true
	}
	return g
}
