package meta

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// TestRequests: requests are written as the server reads them, and read back as they were.
func TestRequests(t *testing.T) {
	for line, r := range map[string]Request{
		"mg foo v q O12 N30":                    {Verb: Get, Key: []byte("foo"), Flags: Flags{Letters: Of("vqON"), Opaque: 12, Vivify: 30}},
		"mg foo v f s t c k R5":                 {Verb: Get, Key: []byte("foo"), Flags: Flags{Letters: Of("vfstckR"), Recache: 5}},
		"mg Zm9v k b":                           {Verb: Get, Key: []byte("Zm9v"), Flags: Flags{Letters: Of("bk")}},
		"ms foo 3 O18446744073709551615 T60 F7": {Verb: Set, Key: []byte("foo"), Size: 3, Flags: Flags{Letters: Of("OTF"), Opaque: 1<<64 - 1, TTL: 60, Client: 7}},
		"ms foo 0 I T-1 C99 ME":                 {Verb: Set, Key: []byte("foo"), Flags: Flags{Letters: Of("ITCM"), TTL: -1, CAS: 99, Mode: 'E'}},
		"md foo q O1":                           {Verb: Delete, Key: []byte("foo"), Flags: Flags{Letters: Of("qO"), Opaque: 1}},
		"mn":                                    {Verb: Noop},
	} {
		if got := string(r.Append(nil)); got != line+"\r\n" {
			t.Errorf("got %q, want %q", got, line)
		}
		var back Request
		if err := back.Parse([]byte(line)); err != nil {
			t.Errorf("%s: %v", line, err)
		} else if d := cmp.Diff(r, back); d != "" {
			t.Errorf("%s: -want +got: %s", line, d)
		}
	}
}

func TestBadRequests(t *testing.T) {
	for _, line := range []string{
		"", "get foo", "mg", "mg " + strings.Repeat("a", 251), "mg a\tb", "ms foo", "ms foo x", "ms foo -1", "ms foo 99999999999", "mg foo O", "mg foo Ox", "mg foo 1",
		"mg foo O18446744073709551616", "ms foo 1 MEE", "ms foo 1 F4294967296", "ms foo 1 T--1", "ms foo 1 T9223372036854775808",
	} {
		var r Request
		if err := r.Parse([]byte(line)); line != "mg foo O" && !errors.Is(err, ErrProtocol) {
			t.Errorf("%q: got %v, expected an error of the protocol", line, err)
		}
	}
}

// responses were sent by memcached 1.6.18.
const responses = "MN\r\nVA 0 t30 O12 W\r\n\r\nVA 3 s3 t-1 f0 O15 kfoo Z X\r\nbar\r\nHD O14\r\nEN O9\r\nNF O19\r\nNS O25\r\nEX\r\n" +
	"SERVER_ERROR object too large for cache\r\nCLIENT_ERROR bad command line format\r\nERROR\r\nVERSION 1.6.18\r\nSTAT maxbytes 67108864\r\nEND\r\nRESET\r\nOK\r\n"

func TestResponses(t *testing.T) {
	want := []Response{
		{Code: MN},
		{Code: VA, Flags: Flags{Letters: Of("tOW"), TTL: 30, Opaque: 12}},
		{Code: VA, Size: 3, Flags: Flags{Letters: Of("stfOkZX"), Size: 3, TTL: -1, Opaque: 15, Key: []byte("foo")}},
		{Code: HD, Flags: Flags{Letters: Of("O"), Opaque: 14}},
		{Code: EN, Flags: Flags{Letters: Of("O"), Opaque: 9}},
		{Code: NF, Flags: Flags{Letters: Of("O"), Opaque: 19}},
		{Code: NS, Flags: Flags{Letters: Of("O"), Opaque: 25}},
		{Code: EX},
		{Code: ServerError, Text: []byte("object too large for cache")},
		{Code: ClientError, Text: []byte("bad command line format")},
		{Code: Unknown},
		{Code: Version, Text: []byte("1.6.18")},
		{Code: Stat, Text: []byte("maxbytes 67108864")},
		{Code: End}, {Code: Reset}, {Code: OK},
	}
	for _, skip := range []bool{false, true} {
		r := NewReader(iotest.OneByteReader(strings.NewReader(responses)), 3)
		for _, w := range want {
			var got Response
			if err := r.Read(&got); err != nil {
				t.Fatalf("%v: %v", w.Code, err)
			}
			if d := cmp.Diff(w, got, cmp.Transformer("text", func(b []byte) string { return string(b) })); d != "" {
				t.Errorf("-want +got: %s", d)
			}
			if value := make([]byte, got.Size); got.Size > 0 && !skip {
				if err := r.Value(value); err != nil || string(value) != "bar" {
					t.Errorf("%q, %v", value, err)
				}
			}
		}
		var last Response
		if err := r.Read(&last); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, expected the end", err)
		}
	}
}

func TestBadResponses(t *testing.T) {
	for text, want := range map[string]error{
		"":                            io.EOF,
		"HD":                          io.ErrUnexpectedEOF,
		"VA 3\r\nba":                  io.ErrUnexpectedEOF,
		"VA 3\r\nbar":                 io.ErrUnexpectedEOF,
		"VA 3\r\nbarXX":               ErrProtocol,
		"VA 4\r\nbarr\r\n":            ErrProtocol,
		"VA x\r\n":                    ErrProtocol,
		"VA 99999999999999999999\r\n": ErrProtocol,
		"HD Ox\r\n":                   ErrProtocol,
		"\r\n":                        ErrProtocol,
		"hello\r\n":                   ErrProtocol,
		strings.Repeat("x", 1<<20):    ErrProtocol,
		"STAT " + strings.Repeat("x", 8000) + "\n": ErrProtocol,
	} {
		if err := readAll(strings.NewReader(text), 3); !errors.Is(err, want) {
			t.Errorf("%.40q: got %v, want %v", text, err, want)
		}
	}
	if err := NewReader(strings.NewReader(""), 9).Value(make([]byte, 3)); err == nil {
		t.Error("a value is read where there is none")
	}
}

func readAll(r io.Reader, maxValue int) error {
	reader := NewReader(r, maxValue)
	for {
		var resp Response
		if err := reader.Read(&resp); err != nil {
			return err
		}
		if resp.Code == VA {
			if err := reader.Value(make([]byte, resp.Size)); err != nil {
				return err
			}
		}
	}
}

func FuzzResponses(f *testing.F) {
	f.Add([]byte(responses))
	f.Add([]byte("VA 70000 \r\n" + strings.Repeat("v", 70000) + "\r\nEN\r\n"))
	f.Add([]byte("VA 3 O1\nbar\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		if err := readAll(bytes.NewReader(in), 1<<17); err == nil {
			t.Error("no end")
		}
	})
}

// FuzzRequests: a line that is read is written as a line that means the same.
func FuzzRequests(f *testing.F) {
	for _, s := range []string{"mg foo v q O12 N30", "ms foo 3 T60 F7 MS", "md  foo q", "mn x", "mg foo k9 t7 W"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var r Request
		if r.Parse(line) != nil {
			return
		}
		r.Flags.Letters &= Of(order)
		if tokens := r.Flags.Letters & tokens; tokens.Has('M') && r.Flags.Mode <= ' ' {
			return // M without a letter
		}
		again := Request{}
		if err := again.Parse(bytes.TrimSuffix(r.Append(nil), []byte("\r\n"))); err != nil {
			t.Fatalf("%q: %v", r.Append(nil), err)
		}
		// Letters that have a token in responses only.
		for _, q := range []*Request{&r, &again} {
			q.Flags.Size = 0
			for letter, clear := range map[byte]func(){
				'T': func() { q.Flags.TTL = 0 }, 'F': func() { q.Flags.Client = 0 }, 'C': func() { q.Flags.CAS = 0 },
				'M': func() { q.Flags.Mode = 0 }, 'O': func() { q.Flags.Opaque = 0 }, 'N': func() { q.Flags.Vivify = 0 }, 'R': func() { q.Flags.Recache = 0 },
			} {
				if !q.Flags.Letters.Has(letter) {
					clear()
				}
			}
		}
		if d := cmp.Diff(r, again); d != "" {
			t.Errorf("%q: -want +got: %s", line, d)
		}
	})
}

// TestNoAllocations: writing requests and reading responses allocate nothing.
func TestNoAllocations(t *testing.T) {
	r := Request{Verb: Get, Key: []byte("shale:key"), Flags: Flags{Letters: Of("vqON"), Opaque: 12, Vivify: 30}}
	b := make([]byte, 0, 100)
	in := bytes.NewReader(nil)
	reader, value := NewReader(in, 3), make([]byte, 3)
	text := []byte("VA 3 s3 t-1 f0 O15 kfoo\r\nbar\r\n")
	var resp Response
	if n := testing.AllocsPerRun(100, func() {
		b = r.Append(b[:0])
		in.Reset(text)
		if reader.Read(&resp) != nil || reader.Value(value) != nil {
			t.Fatal("it cannot be read")
		}
	}); n != 0 {
		t.Errorf("%.0f allocations", n)
	}
}
