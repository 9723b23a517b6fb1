package server

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/memcache/memcachetest"
)

var differential = flag.Int("requests", 1000, "random requests to compare with the real memcached")

// chooser makes random requests, for several servers whose unique numbers differ.
type chooser struct {
	r *rand.Rand
	// unique are numbers that the servers gave at the same places, the newest last.
	unique [2][]string
}

func (g *chooser) key() string { return fmt.Sprintf("key%d", g.r.IntN(40)) }

// cas returns a number that was given, or a wrong one.
func (g *chooser) cas() [2]string {
	n := len(g.unique[0])
	if n == 0 || g.r.IntN(5) == 0 {
		return [2]string{"1", "1"}
	}
	i := n - 1 - g.r.IntN(min(n, 8))
	return [2]string{g.unique[0][i], g.unique[1][i]}
}

func (g *chooser) value() string {
	switch g.r.IntN(20) {
	case 0:
		return strings.Repeat(strings.Repeat("w", 98)+"\r\n", g.r.IntN(600))
	case 1:
		return ""
	case 2:
		return "a\r\nget b\r\n\x00"
	case 3, 4, 5:
		return fmt.Sprint(10 + g.r.IntN(90))
	case 6:
		return []string{" 7", "7 x", "-1", "18446744073709551616", "7x", "+5"}[g.r.IntN(6)]
	}
	return strings.Repeat("v", g.r.IntN(300))
}

func (g *chooser) one(list ...string) string { return list[g.r.IntN(len(list))] }

// request returns a random request, for each server.
func (g *chooser) request() [2]string {
	same := func(format string, args ...any) [2]string {
		text := fmt.Sprintf(format, args...)
		return [2]string{text, text}
	}
	noreply := g.one("", "", "", "", " noreply")
	exp := g.one("0", "0", "1000", "-1", "100000", "x", "2000000000")
	switch g.r.IntN(24) {
	case 0, 1, 2:
		keys := ""
		for range 1 + g.r.IntN(4) {
			keys += " " + g.key()
		}
		return same("%s%s\r\n", g.one("get", "gets"), keys)
	case 3:
		return same("get%s\r\n", strings.Repeat(" "+g.key(), 20+g.r.IntN(60)))
	case 4:
		return same("delete %s%s\r\n", g.key(), g.one("", " 0", " 1", " noreply", " 0 noreply", " 1 noreply", " a b c"))
	case 5:
		return same("%s %s %s%s\r\n", g.one("incr"), g.key(), g.one("1", "100", "x", "-1"), noreply)
	case 6:
		return same("touch %s %s%s\r\n", g.key(), exp, noreply)
	case 7:
		return same("%s %s %s %s\r\n", g.one("gat", "gats"), exp, g.key(), g.key())
	case 8:
		cas, v := g.cas(), g.value()
		return [2]string{
			fmt.Sprintf("cas %s 1 0 %d %s%s\r\n%s\r\n", "key1", len(v), cas[0], noreply, v),
			fmt.Sprintf("cas %s 1 0 %d %s%s\r\n%s\r\n", "key1", len(v), cas[1], noreply, v),
		}
	case 9:
		return same("%s\r\n", g.one("", "x", "xx", "set", "set a 0 0", "get", "gets", "gat 0", "touch a", "incr a", "verbosity", "verbosity x", "verbosity 1", "verbosity 1 noreply", "version x y",
			"mn", "mn x", "mg", "ms", "ms a", "md", "ma", "me", "me none", "mx", "flush_all x", "flush_all -5 x", "  get   key1  ", "get\tkey1", "delete", "add", "cas a 0 0 1", "nonsense x",
			"decr a", "set "+strings.Repeat("k", 251)+" 0 0 1", "mg "+strings.Repeat("k", 251), "ms "+strings.Repeat("k", 251)+" S1", "incr "+strings.Repeat("k", 251)+" 1",
			"mg key1 O"+strings.Repeat("o", 40), "md key1 O"+strings.Repeat("o", 40), "mg a"+strings.Repeat(" v", 19), "ms a 1"+strings.Repeat(" v", 19), "md a"+strings.Repeat(" q", 19), "set a 0 0 -1", "set a -1 0 1", "set a 0 0 x", "ms a x", "ms a -1", "stats foo", "shutdown", "get a\x00b c"))
	case 10, 11, 12:
		flags := ""
		for range g.r.IntN(5) {
			flags += " " + g.one("v", "f", "s", "k", "q", "Oabc", "t", "u", "h", "T1000", "N30", "R50000", "b", "x", "M", "C1", "vv", "T", "Tx", "P", "L1", "c")
		}
		return same("mg %s%s\r\n", g.one(g.key(), g.key(), "a2V5MQ==", "a2V5"), flags)
	case 13, 14, 15:
		flags := ""
		for range g.r.IntN(4) {
			flags += " " + g.one("F5", "F0", "T0", "T1000", "T-1", "k", "q", "Oxyz", "b", "I", "ME", "MA", "MP", "MR", "MS", "MX", "M", "Fx", "z", "S5", "c", "J1")
		}
		v := g.value()
		return same("ms %s %d%s\r\n%s\r\n", g.one(g.key(), g.key(), g.key(), "a2V5MQ==", "a2V5"), len(v), flags, v)
	case 16:
		cas, v, more := g.cas(), g.value(), g.one("", " I", " MR", " MA", " ME", " q k")
		return [2]string{
			fmt.Sprintf("ms %s %d C%s%s\r\n%s\r\n", "key1", len(v), cas[0], more, v),
			fmt.Sprintf("ms %s %d C%s%s\r\n%s\r\n", "key1", len(v), cas[1], more, v),
		}
	case 17:
		flags := ""
		for range g.r.IntN(4) {
			flags += " " + g.one("q", "k", "Oabc", "I", "T100", "b", "z", "x")
		}
		return same("md %s%s\r\n", g.one(g.key(), "a2V5MQ=="), flags)
	case 18:
		flags := ""
		for range g.r.IntN(4) {
			flags += " " + g.one("q", "k", "Oabc", "N100", "J15", "D3", "v", "t", "MI", "M+", "MX", "z", "Dx", "Jx", "c")
		}
		return same("ma %s%s\r\n", g.key(), flags)
	case 19:
		return same("set key1 0 0 %d\r\n%s\r\ngets key1\r\n", 3, "one")
	}
	v := g.value()
	wrong := 0
	if g.r.IntN(40) == 0 {
		wrong = g.r.IntN(3)
	}
	return same("%s %s %s %s %d%s\r\n%s\r\n", g.one("set", "set", "add", "replace", "append", "prepend"), g.key(), g.one("0", "7", "4294967295", "x"), exp, len(v)+wrong, noreply, v)
}

var uniqueNumber = regexp.MustCompile(`(?m)^(VALUE \S+ \d+ \d+ )(\d+)\r$| c(\d+)`)

// secondsLeft of an item depend on when the second of a server begins.
var secondsLeft = regexp.MustCompile(`(?m)^((?:HD|VA).*?) t\d+`)

// TestDifferential sends the same random requests, pipelined and in pieces, to this server and to the real
// memcached: the responses are the same, byte for byte, but for unique numbers.
//
// Left out is what depends on more than the requests: decr, and incr beyond 64 bits, which keep the length
// of a number unless another response refers to the item; times since the last use; and what
// memcached itself calls a bug.
func TestDifferential(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 211))
	_, addr := start(t, testOptions())
	servers := [2]*client{dial(t, addr), dial(t, memcachetest.Start(t).Addr)}
	g := &chooser{r: r}
	for sent := 0; sent < *differential; {
		for _, c := range servers {
			c.patient()
		}
		var batch [2]strings.Builder
		for range 1 + r.IntN(20) {
			for i, text := range g.request() {
				batch[i].WriteString(text)
			}
			sent++
		}
		var got [2]string
		for i, c := range servers {
			batch[i].WriteString("mn\r\nset end 0 0 3\r\nend\r\nget end\r\n")
			written := make(chan error, 1)
			seed := r.Uint64()
			go func() { written <- writePieces(rand.New(rand.NewPCG(seed, 1)), c, batch[i].String()) }()
			got[i] = readUntilEnd(t, c)
			if err := <-written; err != nil {
				t.Fatal(err)
			}
		}
		for i, text := range got {
			text = secondsLeft.ReplaceAllString(strings.ReplaceAll(text, Version, "1.6.18"), "$1 tleft")
			got[i] = uniqueNumber.ReplaceAllStringFunc(text, func(number string) string {
				if at := strings.LastIndexAny(number, " c"); at >= 0 {
					g.unique[i] = append(g.unique[i], strings.TrimSpace(number[at+1:]))
					return number[:at+1] + "unique"
				}
				return number
			})
		}
		if got[0] != got[1] {
			at := 0
			for at < min(len(got[0]), len(got[1])) && got[0][at] == got[1][at] {
				at++
			}
			from := max(0, at-200)
			t.Fatalf("after %d requests: %.4000q, at byte %d:\ngot  %.400q\nwant %.400q", sent, batch[0].String(), at, got[0][from:], got[1][from:])
		}
	}
}

// writePieces sends a text in random pieces, some of them of one byte.
func writePieces(r *rand.Rand, c *client, text string) error {
	for len(text) > 0 {
		n := len(text)
		switch r.IntN(4) {
		case 0:
			n = 1
		case 1:
			n = 1 + r.IntN(200)
		}
		n = min(n, len(text))
		if _, err := io.WriteString(c, text[:n]); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

func readUntilEnd(t *testing.T, c *client) string {
	t.Helper()
	var got bytes.Buffer
	for !bytes.HasSuffix(got.Bytes(), []byte("VALUE end 0 3\r\nend\r\nEND\r\n")) {
		line, err := c.r.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after %.1000q", err, got.String())
		}
		got.WriteString(line)
	}
	return got.String()
}
