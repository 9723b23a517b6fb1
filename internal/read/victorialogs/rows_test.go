package victorialogs

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// readAll returns the rows of a body.
func readAll(r io.Reader) (all [][]field, err error) {
	s := newRowReader(r)
	for {
		row, err := s.next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		var own []field
		for _, f := range row {
			own = append(own, field{[]byte(string(f.name)), []byte(string(f.value))})
		}
		all = append(all, own)
	}
}

func TestRows(t *testing.T) {
	long := strings.Repeat("x", 200_000) // more than the buffer has
	for _, test := range []struct {
		name, body string
		rows       int
		err        error
	}{
		{"none", "", 0, nil},
		{"two", "{\"a\":\"1\"}\n{\"b\":\"\\u00e9\\n\"}\n", 2, nil},
		{"blank lines and spaces", "\n {\"a\" : \"1\" , \"b\":\"\" } \n\n", 1, nil},
		{"no field", "{}\n", 1, nil},
		{"long", "{\"a\":\"" + long + "\"}\n{\"a\":\"1\"}\n", 2, nil},
		{"cut within a row", "{\"a\":\"1\"}\n{\"a\":\"", 1, errCut},
		{"cut before the end of the last line", "{\"a\":\"1\"}", 0, errCut},
		{"an error in the middle", "{\"a\":\"1\"}\ncannot execute query: timeout\n", 1, errRow},
		{"a number", "{\"a\":1}\n", 0, errRow},
		{"an object", "{\"a\":{\"b\":\"c\"}}\n", 0, errRow},
		{"an array", "[\"a\"]\n", 0, errRow},
		{"two objects in a line", "{\"a\":\"1\"}{\"a\":\"1\"}\n", 0, errRow},
		{"a comma at the end", "{\"a\":\"1\",}\n", 0, errRow},
		{"no colon", "{\"a\" \"1\"}\n", 0, errRow},
		{"a control character", "{\"a\":\"\x01\"}\n", 0, errRow},
		{"a control character after others", "{\"a\":\"0123456789\x1f\"}\n", 0, errRow},
		{"a control character after an escape", "{\"a\":\"\\n\x01\"}\n", 0, errRow},
		{"a string without an end", "{\"a\":\"0123456789\n", 0, errRow},
		{"a backslash at the end", "{\"a\":\"0123\\\n", 0, errRow},
		{"half a surrogate", "{\"a\":\"\\ud83d\"}\n", 0, errRow},
		{"an unknown escape", "{\"a\":\"\\x41\"}\n", 0, errRow},
		{"too many fields", "{" + strings.Repeat(`"a":"1",`, maxFields) + "\"a\":\"1\"}\n", 0, errMany},
		{"too long", "{\"a\":\"" + strings.Repeat("x", maxRowBytes) + "\"}\n", 0, errLong},
	} {
		t.Run(test.name, func(t *testing.T) {
			rows, err := readAll(iotest.HalfReader(strings.NewReader(test.body)))
			if len(rows) != test.rows || !errors.Is(err, test.err) {
				t.Errorf("%d rows and %v, want %d and %v", len(rows), err, test.rows, test.err)
			}
		})
	}
}

// FuzzRows: what is read is what encoding/json reads, and what that refuses is refused.
func FuzzRows(f *testing.F) {
	f.Add("{\"_msg\":\"a \\\"b\\\" \\u00e9\",\"_time\":\"2025-11-24T16:00:00.5Z\"}")
	f.Add(`{"_stream":"{app=\"web\",k=\"a\\\"b\\\\c\\nd\"}", "":""}`)
	f.Add(`{"a":"\ud83d\ude00","a":"\t"}`)
	f.Add(`{"a":"12345678\\u0041","b":"1234567\"","c":"12345678\\/\\b\\f\\r"}`)
	f.Add("{\"a\":\"1234567\x1f\"}")
	f.Add("{\"a\":\"12345678\xe2\x82\xac\x7f\x80\xff\"}")
	f.Add(`{"a":"\\`)
	f.Add("{}")
	f.Add("cannot execute query")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsAny(text, "\n\r") || strings.TrimSpace(text) == "" {
			t.Skip()
		}
		rows, err := readAll(strings.NewReader(text + "\n"))
		var want map[string]string
		failed := json.Unmarshal([]byte(text), &want)
		if err == nil && failed != nil {
			t.Fatalf("%q is read as %q, but: %v", text, rows, failed)
		}
		if err != nil || !utf8.ValidString(text) {
			return
		}
		got := map[string]string{}
		for _, f := range rows[0] {
			got[string(f.name)] = string(f.value)
		}
		if len(got) != len(want) {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
		for name, value := range want {
			if got[name] != value {
				t.Fatalf("%q: %q, want %q", text, got, want)
			}
		}
	})
}
