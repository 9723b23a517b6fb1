package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
)

func free(int64) error { return nil }

// answer returns an answer of several frames.
func answer(t testing.TB) []byte {
	var b bytes.Buffer
	w := NewWriter(&b)
	for _, err := range []error{
		w.WriteJSON(Head, Answer{Version: Version, Session: "s", Journals: []Journal{{Node: "p0", Epoch: 1, From: 1, To: 9, Ready: true}}}),
		w.Write(Record, bytes.Repeat([]byte("record"), 1000)),
		w.Write(Chunks, AppendChunks(nil, []Chunk{{TimeRange: model.TimeRange{Min: -5, Max: 7}, Rows: 3, Bytes: 99, Order: 1, Page: 2, Index: 4}})),
		w.Write(Strings, AppendString(AppendString(nil, []byte("a")), nil)),
		w.Write(Record, nil),
		w.WriteJSON(Trailer, End{Cost: Cost{HeadParts: 3}}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// readAll reads frames up to the last one.
func readAll(b []byte) (kinds []Kind, err error) {
	r := NewReader(bytes.NewReader(b), free)
	for !r.Ended() {
		k, _, err := r.Next()
		if err != nil {
			return kinds, err
		}
		kinds = append(kinds, k)
	}
	return kinds, nil
}

// TestEveryByte cuts an answer at each length, and changes each of its bytes: neither may come as a whole
// one.
func TestEveryByte(t *testing.T) {
	whole := answer(t)
	kinds, err := readAll(whole)
	if err != nil || !slices.Equal(kinds, []Kind{Head, Record, Chunks, Strings, Record, Trailer}) {
		t.Fatal(kinds, err)
	}
	for n := range whole {
		if _, err := readAll(whole[:n]); !errors.Is(err, ErrDamaged) || !errors.Is(err, model.ErrTransient) {
			t.Fatalf("cut after %d bytes: %v", n, err)
		}
		b := bytes.Clone(whole)
		b[n] ^= 0x10
		if _, err := readAll(b); err == nil {
			t.Fatalf("byte %d changed, and nothing was noticed", n)
		}
	}
}

// TestBounds checks that no memory is taken for what is too large or not paid for.
func TestBounds(t *testing.T) {
	header := func(size uint32, k Kind) []byte {
		return []byte{byte(size), byte(size >> 8), byte(size >> 16), byte(size >> 24), 0, 0, 0, 0, byte(k)}
	}
	for _, b := range [][]byte{header(MaxFrame+1, Record), header(maxJSON+1, Head), header(math.MaxUint32, Strings), header(0, 99)} {
		r := NewReader(bytes.NewReader(b), func(n int64) error { t.Errorf("%d bytes were asked for", n); return nil })
		if _, _, err := r.Next(); !errors.Is(err, ErrDamaged) {
			t.Errorf("%x: %v", b, err)
		}
	}
	refused := errors.New("refused")
	r := NewReader(bytes.NewReader(header(MaxFrame, Record)), func(int64) error { return refused })
	if _, _, err := r.Next(); !errors.Is(err, refused) || r.Bytes() != 0 {
		t.Errorf("%v, %d bytes", err, r.Bytes())
	}
	if err := NewWriter(io.Discard).Write(Record, make([]byte, MaxFrame+1)); !errors.Is(err, model.ErrLimit) {
		t.Error(err)
	}
}

func TestFailures(t *testing.T) {
	for _, class := range []error{model.ErrInvalid, model.ErrLimit, model.ErrCorrupt, model.ErrClosed, model.ErrTransient, ErrOverloaded, ErrWrongJournal, ErrLag} {
		var b bytes.Buffer
		if err := NewWriter(&b).WriteJSON(Error, FailureOf(fmt.Errorf("%w: because", class))); err != nil {
			t.Fatal(err)
		}
		_, _, err := NewReader(&b, free).Next()
		if !errors.Is(err, class) || err.Error() != class.Error()+": because" {
			t.Errorf("%v came as %v", class, err)
		}
	}
	if f := FailureOf(errors.New("no class")); f.Code != CodeTransient {
		t.Errorf("%+v", f)
	}
}

// TestMatchers checks that matchers that everyone can evaluate mean the same afterwards, and that the others
// let through at least what they should.
func TestMatchers(t *testing.T) {
	values := []string{"", "a", "ab", "b", "\xff", "a\nb", "(?P<x>"}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"a", "a.*", "a|b", "", "\xff", "(?i)A", ".+"}).Draw(t, "value")
		in := Matcher{Name: "n", Op: rapid.SampledFrom(ops[:]).Draw(t, "op"), Value: []byte(word)}
		m, err := in.decode()
		if err != nil {
			return // such as an expression that is not UTF-8
		}
		again, own := EncodeMatchers([]model.Matcher{m})
		if len(own) != 0 {
			t.Fatalf("%+v is called the sender's own", in)
		}
		back, err := again[0].decode()
		if err != nil {
			t.Fatal(err)
		}
		odd := m
		odd.Standard = false
		odd.Set = rapid.SampledFrom([][]string{nil, m.Set}).Draw(t, "set")
		loose, own := EncodeMatchers([]model.Matcher{odd})
		if (len(own) == 1) != (m.Op >= model.MatchRegexp) {
			t.Fatalf("%+v: %d are the sender's own", in, len(own))
		}
		wide, err := loose[0].decode()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			if m.Match(v) != back.Match(v) {
				t.Fatalf("%+v of %q: %v", in, v, back.Match(v))
			}
			if m.Match(v) && !wide.Match(v) {
				t.Fatalf("%+v, sent as %+v, leaves out %q", in, loose[0], v)
			}
		}
	})
}

func TestChunkRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var body []byte
		var want [][]Chunk
		for range rapid.IntRange(0, 4).Draw(t, "series") {
			var of []Chunk
			for range rapid.IntRange(0, 3).Draw(t, "chunks") {
				var c Chunk
				c.Min = rapid.Int64().Draw(t, "min")
				c.Max = rapid.Int64Range(c.Min, math.MaxInt64).Draw(t, "max")
				c.Rows, c.Bytes = rapid.IntRange(0, 1<<31).Draw(t, "rows"), rapid.Int64Range(0, 1<<40).Draw(t, "bytes")
				c.Order, c.Page, c.Index = rapid.Uint64Range(0, 1<<31).Draw(t, "order"), rapid.IntRange(0, 1<<31).Draw(t, "page"), rapid.IntRange(0, 1<<31).Draw(t, "index")
				of = append(of, c)
			}
			want, body = append(want, of), AppendChunks(body, of)
		}
		for i, of := range want {
			var got []Chunk
			var err error
			if got, body, err = TakeChunks(body, nil); err != nil || !slices.Equal(got, of) {
				t.Fatalf("series %d: %v %+v, want %+v", i, err, got, of)
			}
		}
		if len(body) != 0 {
			t.Fatalf("%d bytes are left", len(body))
		}
	})
}

// TestAllocations reads frames without taking memory for each.
func TestAllocations(t *testing.T) {
	if racetest.Fewer > 1 {
		t.Skip("the race detector allocates")
	}
	var b bytes.Buffer
	w := NewWriter(&b)
	body := AppendChunks(nil, make([]Chunk, 1000))
	const frames = 200
	for range frames {
		if err := w.Write(Chunks, body); err != nil {
			t.Fatal(err)
		}
	}
	in := b.Bytes()
	chunks := make([]Chunk, 0, 1000)
	n := testing.AllocsPerRun(5, func() {
		r := NewReader(bytes.NewReader(in), free)
		for range frames {
			_, body, err := r.Next()
			if err == nil {
				chunks, _, err = TakeChunks(body, chunks[:0])
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	if n > 10 {
		t.Errorf("%v allocations for %d frames", n, frames)
	}
}

// FuzzFrames reads any bytes as an answer: no panic, and memory in proportion to the input.
func FuzzFrames(f *testing.F) {
	f.Add(answer(f))
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 8, 0, 0, 0, 0, byte(Record)})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(bytes.NewReader(b), func(n int64) error {
			if n > MaxFrame {
				t.Fatalf("%d bytes were asked for", n)
			}
			if n > 1<<20 {
				return model.ErrLimit
			}
			return nil
		})
		for !r.Ended() {
			k, body, err := r.Next()
			if err != nil {
				return
			}
			switch k {
			case Strings:
				_ = EachString(body, func([]byte) error { return nil })
			case Chunks:
				for len(body) > 0 {
					chunks, rest, err := TakeChunks(body, nil)
					if err != nil {
						break
					}
					again := AppendChunks(nil, chunks)
					if back, _, err := TakeChunks(again, nil); err != nil || !slices.Equal(back, chunks) {
						t.Fatalf("%+v came back as %+v, %v", chunks, back, err)
					}
					body = rest
				}
			}
		}
	})
}

// FuzzRequest parses any bytes as a request.
func FuzzRequest(f *testing.F) {
	ms, _ := EncodeMatchers([]model.Matcher{{Name: "a", Op: model.MatchRegexp, Value: "b|c", Standard: true}, {Name: "d", Op: model.MatchRegexp, Set: []string{"e"}}})
	b, err := json.Marshal(Request{
		Version: Version, Journals: []Need{{Node: "p0", Epoch: 1, After: 3, AtLeast: 4}}, Tenant: "t", Signal: model.Logs, Matchers: ms,
		Filter: [][]Literal{{{Value: []byte("x"), Fold: true}}}, Cells: &model.TextCells{Step: 5},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"version":1,"signal":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseRequest(b)
		if err != nil {
			if !errors.Is(err, model.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		if m, err := r.ToModel(); err == nil {
			for i := range m.Matchers {
				m.Matchers[i].MatchesEmpty()
			}
		} else if !errors.Is(err, model.ErrInvalid) {
			t.Fatal(err)
		}
	})
}
