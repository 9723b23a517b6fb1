package jsonscan

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestValue(t *testing.T) {
	for _, c := range []struct {
		text string
		kind Kind
		end  int
	}{
		{`"a\"b" `, String, 6},
		{`"a\\"b`, String, 5},
		{`"a\\\"`, String, -1},
		{`"\"\"\\", 1`, String, 8},
		{`"`, String, -1},
		{`{"a":"}"}x`, Object, 9},
		{`{"a":[}`, Object, 7},
		{`{"a":"}`, Object, -1},
		{`[[1],"]"],`, Array, 9},
		{`[[1]`, Array, -1},
		{`true,`, Bool, 4},
		{`false`, Bool, 5},
		{`null}`, Null, 4},
		{`nul]`, Unknown, 3},
		{`-1x y`, Number, 3},
		{`12.5e3`, Number, 6},
		{`+1`, Unknown, 2},
		{`}`, Unknown, 0},
	} {
		if kind, end := Value([]byte(c.text), 0); kind != c.kind || end != c.end {
			t.Errorf("%s: got kind %d, end %d, want %d, %d", c.text, kind, end, c.kind, c.end)
		}
	}
}

func TestAppendUnescaped(t *testing.T) {
	const refused = "refused"
	for _, c := range []struct{ text, json, loki, logfmt string }{
		{`plain`, "plain", "plain", "plain"},
		{`\"\\\/\b\f\n\r\t`, "\"\\/\b\f\n\r\t", "\"\\/\b\f\n\r\t", "\"\\/\b\f\n\r\t"},
		{`\u0041\u00e9\uFFFD`, "Aé\ufffd", "Aé\ufffd", "Aé\ufffd"},
		{`\'`, refused, refused, "'"},
		{`\x`, refused, refused, refused},
		{`a\`, refused, refused, refused},
		{`\u12`, refused, refused, refused},
		{`\u12g4`, refused, refused, refused},
		{`\ud83d\ude00`, "😀", "😀", "😀"},
		{`\ud83d??de00`, refused, "😀", "\ufffd??de00"},
		{`\ud83d`, refused, refused, "\ufffd"},
		{`\ude00\ude00`, refused, "\ufffd", "\ufffd\ufffd"},
		{`\ud83d\u0041`, refused, refused, "\ufffdA"},
		{`\ud83d\n`, refused, refused, "\ufffd\n"},
		{"\xff\\n", "\xff\n", "\xff\n", "\xff\n"},
	} {
		for d, want := range map[Dialect]string{JSON: c.json, Loki: c.loki, Logfmt: c.logfmt} {
			got, ok := AppendUnescaped([]byte("x"), []byte(c.text), d)
			if ok != (want != refused) || ok && string(got) != "x"+want {
				t.Errorf("%s in dialect %d: got %q, %v, want %q", c.text, d, got, ok, want)
			}
		}
	}
}

// FuzzValue holds ends and strings to what encoding/json finds in valid JSON.
func FuzzValue(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,{"b":"c\"}"}],"d":null}`, `"\\\"\u00e9\ud83d\ude00"`, ` [true, false, -1.5e+3]`, `"\ud800x"`,
		`"\\\\"`, `{}`, `[]`, `12`, "\"\xff\"", `"\ud83d\ud83d"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		i := SkipSpace(b, 0)
		if i == len(b) {
			return
		}
		kind, end := Value(b, i)
		if end > len(b) {
			t.Fatalf("%q ends at %d", b, end)
		}
		if !json.Valid(b) {
			return
		}
		if kind == Unknown || SkipSpace(b, end) != len(b) {
			t.Fatalf("%q: got kind %d, end %d", b, kind, end)
		}
		if kind != String || !utf8.Valid(b) {
			return
		}
		var want string
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		got, ok := AppendUnescaped(nil, b[i+1:end-1], Logfmt) // which has U+FFFD for a surrogate alone too
		if !ok || string(got) != want {
			t.Fatalf("%q: got %q, %v, want %q", b, got, ok, want)
		}
		strict, ok := AppendUnescaped(nil, b[i+1:end-1], JSON)
		if ok && !bytes.Equal(strict, got) || !ok && !strings.ContainsRune(want, utf8.RuneError) {
			t.Fatalf("%q: got %q, %v in strict JSON, want %q", b, strict, ok, want)
		}
	})
}

// BenchmarkAppendUnescaped has the two extremes: quoted JSON and a stack trace.
func BenchmarkAppendUnescaped(b *testing.B) {
	for name, s := range map[string]string{
		"quoted": strings.Repeat(`\"key\":\"value\",`, 20),
		"stack":  strings.Repeat(`at com.example.some.package.Class.method(Class.java:123)\n\t`, 20),
	} {
		b.Run(name, func(b *testing.B) {
			var out []byte
			text := []byte(s)
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			for b.Loop() {
				out, _ = AppendUnescaped(out[:0], text, JSON)
			}
		})
	}
}
