package server

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/memcache/items"
)

// script is a connection that reads what it was given, in pieces, and keeps what is written.
type script struct {
	net.Conn
	in    []byte
	piece int
	out   bytes.Buffer
}

func (s *script) Read(b []byte) (int, error) {
	if len(s.in) == 0 {
		return 0, io.EOF
	}
	n := copy(b, s.in[:min(len(s.in), s.piece)])
	s.in = s.in[n:]
	return n, nil
}

func (s *script) Write(b []byte) (int, error)      { return s.out.Write(b) }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }
func (s *script) LocalAddr() net.Addr              { return &net.TCPAddr{} }

// FuzzRequests: whatever a client sends, the server answers it, the same however it is cut.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		"set a 5 0 3\r\nabc\r\nget a b\r\ngets a\r\n", "cas a 0 0 1 7\r\nx\r\nincr a 5\r\ndecr a 5 noreply\r\n", "gat 100 a b\r\ntouch a -1\r\ndelete a 0 noreply\r\n",
		"mg a v s k q t c f h l u Oxyz T30 N30 R30\r\nmn\r\n", "ms Zm9v 2 b k c T0 F5 MA I C3\r\nhi\r\nmd Zm9v b I q\r\nma n N0 J5 D3 v t c\r\nme Zm9v b\r\n",
		"flush_all 10\r\nflush_all\r\nverbosity 1\r\nversion\r\nshutdown\r\nquit\r\n", "set a 0 0 2000000\r\n", "set a 0 0 -1\r\n\x80\x00", "append a 0 0 1\r\nx\r\nprepend a 0 0 1\r\ny\r\n",
		"\x80\x0b\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00", "get a\x00b c\r\n", "stats slabs\r\n",
	} {
		f.Add([]byte(seed), uint8(3))
	}
	o := testOptions()
	o.Memory = 16 << 20
	f.Fuzz(func(t *testing.T, in []byte, piece uint8) {
		var got [2]string
		for i, n := range []int{1 << 20, int(piece) + 1} {
			s, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			s.cas.Store(1000)
			nc := &script{in: in, piece: n}
			c := &conn{s: s, nc: nc, addr: "script"}
			_ = c.serve() // it says how the connection ended
			got[i] = nc.out.String()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Contains(in, []byte("stats")) && !bytes.Contains(in, []byte("\n")) && got[0] != got[1] {
			t.Errorf("%q, and in pieces of %d: %q", got[0], int(piece)+1, got[1])
		}
	})
}

// FuzzWords: numbers and words are parsed within bounds.
func FuzzWords(f *testing.F) {
	f.Add([]byte("get  a\x00b"))
	f.Add([]byte("-2147483648 18446744073709551615 +7 -"))
	f.Fuzz(func(t *testing.T, line []byte) {
		var into [mostWords][]byte
		list, rest := words(line, &into)
		total := len(rest)
		for _, w := range list {
			if total += len(w); len(w) == 0 || bytes.ContainsAny(w, " \x00") {
				t.Errorf("a word of %q is %q", line, w)
			}
			if n, ok := signed32(w); ok && int64(n) < 0 && w[0] != '-' {
				t.Errorf("%q is %d", w, n)
			}
		}
		if total > len(line) {
			t.Errorf("%q has more in its words", line)
		}
		_, _ = counter(line)
	})
}

// FuzzDisk: a record on the disk may have any content.
func FuzzDisk(f *testing.F) {
	f.Add([]byte("too short"))
	f.Add(diskValue(items.Item(make([]byte, 48))))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, value, ok := parseDisk(b)
		if ok && (n.Size != len(value) || n.Marks&^keptMarks != 0) {
			t.Errorf("%+v of %d bytes", n, len(value))
		}
	})
}
