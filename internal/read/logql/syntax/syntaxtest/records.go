package syntaxtest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Record is what a parser says of a query: two texts or an error.
type Record struct {
	Query string
	// Text is the canonical form and Pretty the one over several lines. Both are empty if there is an error.
	Text, Pretty string
	Error        string
	// Why says, where we differ from Loki, why.
	Why string
}

// Queries reads a file of queries, one in each line, quoted as in Go where a line cannot hold it.
func Queries(path string) ([]string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var queries []string
	for _, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		q, err := unquote(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, line, err)
		}
		queries = append(queries, q)
	}
	return queries, nil
}

// Read reads a file of records.
func Read(path string) ([]Record, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var records []Record
	for i, line := range strings.Split(string(b), "\n") {
		name, value, _ := strings.Cut(line, ": ")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s, err := unquote(value)
		if err != nil || name != "query" && len(records) == 0 {
			return nil, fmt.Errorf("%s: line %d: %s: %w", path, i+1, line, err)
		}
		if name == "query" {
			records = append(records, Record{Query: s})
			continue
		}
		r := &records[len(records)-1]
		switch name {
		case "text":
			r.Text, r.Pretty = s, s
		case "pretty":
			r.Pretty = s
		case "error":
			r.Error = s
		case "why":
			r.Why = s
		default:
			return nil, fmt.Errorf("%s: line %d: %s", path, i+1, line)
		}
	}
	return records, nil
}

// Write writes a file of records, with a comment at its head.
func Write(path, comment string, records []Record) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n", comment)
	for _, r := range records {
		fmt.Fprintf(&b, "\nquery: %s\n", quote(r.Query))
		if r.Why != "" {
			fmt.Fprintf(&b, "why: %s\n", quote(r.Why))
		}
		if r.Error != "" {
			fmt.Fprintf(&b, "error: %s\n", quote(r.Error))
			continue
		}
		fmt.Fprintf(&b, "text: %s\n", quote(r.Text))
		if r.Pretty != r.Text {
			fmt.Fprintf(&b, "pretty: %s\n", quote(r.Pretty))
		}
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// quote leaves alone what one line can hold and unquote can tell from a quoted string.
func quote(s string) string {
	plain := utf8.ValidString(s) && s == strings.TrimSpace(s) && s != "" && s[0] != '"' &&
		strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
	if plain {
		return s
	}
	return strconv.Quote(s)
}

func unquote(s string) (string, error) {
	if strings.HasPrefix(s, `"`) {
		return strconv.Unquote(s)
	}
	return s, nil
}

// Sample returns n queries that are always the same: half of them made by the rules, half of them changed.
func Sample(n int, seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, 0))
	g := Generator{R: r}
	queries := make([]string, n)
	for i := range queries {
		queries[i] = g.Query()
		if i%2 == 1 {
			queries[i] = Mutate(r, queries[i])
		}
	}
	return queries
}
