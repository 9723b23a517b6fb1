package linetest

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Write writes records to a file: each as lines of a word and quoted strings, with an empty line after it.
func Write(name string, records []Record) error {
	var b bytes.Buffer
	for _, r := range records {
		put(&b, "query", r.Query)
		put(&b, "stream", r.Stream...)
		put(&b, "metadata", r.Metadata...)
		put(&b, "at", strconv.FormatInt(r.At, 10))
		put(&b, "line", r.Line)
		if r.Why != "" {
			put(&b, "differs", r.Why)
		}
		switch {
		case r.Out.Error != "":
			put(&b, "error", r.Out.Error)
		case r.Out.Keep:
			put(&b, "keep", r.Out.Line)
			put(&b, "of-stream", r.Out.Stream...)
			put(&b, "of-metadata", r.Out.Metadata...)
			put(&b, "parsed", r.Out.Parsed...)
		}
		b.WriteByte('\n')
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}

func put(b *bytes.Buffer, word string, texts ...string) {
	if len(texts) == 0 {
		return
	}
	b.WriteString(word)
	for _, t := range texts {
		b.WriteByte(' ')
		b.WriteString(strconv.QuoteToASCII(t))
	}
	b.WriteByte('\n')
}

// Read reads what Write has written.
func Read(name string) ([]Record, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var all []Record
	var r Record
	for n, line := range strings.Split(string(b), "\n") {
		if line == "" {
			if r.Query != "" {
				all = append(all, r)
			}
			r = Record{}
			continue
		}
		word, texts, err := take(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n+1, err)
		}
		if err := r.put(word, texts); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n+1, err)
		}
	}
	return all, nil
}

func take(line string) (word string, texts []string, err error) {
	word, rest, _ := strings.Cut(line, " ")
	for rest != "" {
		q, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return "", nil, err
		}
		t, err := strconv.Unquote(q)
		if err != nil {
			return "", nil, err
		}
		texts = append(texts, t)
		rest = strings.TrimPrefix(rest[len(q):], " ")
	}
	if len(texts) == 0 {
		return "", nil, fmt.Errorf("expected a text after %q", word)
	}
	return word, texts, nil
}

func (r *Record) put(word string, texts []string) (err error) {
	switch word {
	case "query":
		r.Query = texts[0]
	case "stream":
		r.Stream = texts
	case "metadata":
		r.Metadata = texts
	case "at":
		r.At, err = strconv.ParseInt(texts[0], 10, 64)
	case "line":
		r.Line = texts[0]
	case "differs":
		r.Why = texts[0]
	case "error":
		r.Out.Error = texts[0]
	case "keep":
		r.Out.Keep, r.Out.Line = true, texts[0]
	case "of-stream":
		r.Out.Stream = texts
	case "of-metadata":
		r.Out.Metadata = texts
	case "parsed":
		r.Out.Parsed = texts
	default:
		err = fmt.Errorf("unknown word %q", word)
	}
	return err
}
