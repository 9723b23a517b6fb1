package logqltest

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Record is a query over a data set with Loki's result.
type Record struct {
	Data  *Dataset
	Query Query
	Loki  *Result
}

// Write writes records to a file, with a comment at its head. Each data set comes before its first record.
func Write(path, comment string, records []Record) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n", comment)
	written := map[*Dataset]bool{}
	for i := range records {
		r := &records[i]
		if !written[r.Data] {
			written[r.Data] = true
			b.WriteString("\n" + r.Data.String())
		}
		b.WriteString("\n" + r.String())
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// String returns the record as the file has it.
func (r *Record) String() string {
	q := &r.Query
	s := fmt.Sprintf("query %q\nover %q %d %d %d %d %t\n", q.Text, r.Data.Name, q.Start-Begin, q.End-Begin, q.Step, q.Limit, q.Forward)
	return s + r.Loki.String()
}

// String returns the data set as the file has it.
func (d *Dataset) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "data %q\n", d.Name)
	for _, s := range d.Streams {
		fmt.Fprintf(&b, "stream%s\n", quoted(s.Labels))
		for _, l := range s.Lines {
			fmt.Fprintf(&b, "line %d %q%s\n", l.Time-Begin, l.Text, quoted(l.Metadata))
		}
	}
	return b.String()
}

func quoted(texts []string) string {
	var b strings.Builder
	for _, t := range texts {
		b.WriteString(" " + strconv.Quote(t))
	}
	return b.String()
}

// Read reads a file of records.
func Read(path string) ([]Record, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := reader{data: map[string]*Dataset{}}
	for i, line := range strings.Split(string(b), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		if err := r.read(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
	}
	return r.records, nil
}

// reader reads the lines of a file.
type reader struct {
	data    map[string]*Dataset
	last    *Dataset
	records []Record
}

func (r *reader) read(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "data":
		texts, err := unquoted(rest)
		if err != nil || len(texts) != 1 {
			return fmt.Errorf("expected a name: %w", err)
		}
		r.last = &Dataset{Name: texts[0]}
		r.data[texts[0]] = r.last
		return nil
	case "stream":
		labels, err := unquoted(rest)
		r.last.Streams = append(r.last.Streams, Stream{Labels: labels})
		return err
	case "line":
		return r.readLine(rest)
	case "query":
		texts, err := unquoted(rest)
		if err != nil || len(texts) != 1 {
			return fmt.Errorf("expected a query: %w", err)
		}
		r.records = append(r.records, Record{Query: Query{Text: texts[0]}, Loki: &Result{}})
		return nil
	case "over":
		return r.readTimes(rest)
	}
	return r.records[len(r.records)-1].Loki.read(word, rest)
}

func (r *reader) readLine(rest string) error {
	at, rest, _ := strings.Cut(rest, " ")
	t, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return err
	}
	texts, err := unquoted(rest)
	if err != nil || len(texts) == 0 {
		return fmt.Errorf("expected a line: %w", err)
	}
	s := &r.last.Streams[len(r.last.Streams)-1]
	s.Lines = append(s.Lines, Line{Begin + t, texts[0], texts[1:]})
	return nil
}

func (r *reader) readTimes(rest string) error {
	x := &r.records[len(r.records)-1]
	q, name := &x.Query, ""
	if _, err := fmt.Sscanf(rest, "%q %d %d %d %d %t", &name, &q.Start, &q.End, &q.Step, &q.Limit, &q.Forward); err != nil {
		return err
	}
	q.Start, q.End = q.Start+Begin, q.End+Begin
	if x.Data = r.data[name]; x.Data == nil {
		return fmt.Errorf("expected a data set before its query, got %q", name)
	}
	return nil
}

// read reads a line of a result.
func (r *Result) read(word, rest string) (err error) {
	switch word {
	case Matrix, Vector, Scalar, Streams:
		r.Type = word
		return nil
	case "error":
		r.Error, err = strconv.Unquote(rest)
		return err
	case "series":
		texts, err := unquoted(rest)
		r.Series = append(r.Series, Series{Labels: texts})
		return err
	}
	t, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return err
	}
	s := &r.Series[len(r.Series)-1]
	if r.Type == Streams {
		text, err := strconv.Unquote(rest)
		s.Lines = append(s.Lines, Entry{t + Begin, text})
		return err
	}
	v, err := strconv.ParseFloat(rest, 64)
	s.Points = append(s.Points, Point{t + Begin/1e6, v})
	return err
}

func unquoted(s string) (texts []string, err error) {
	for s = strings.TrimPrefix(s, " "); s != ""; s = strings.TrimPrefix(s, " ") {
		q, err := strconv.QuotedPrefix(s)
		if err != nil {
			return nil, err
		}
		t, err := strconv.Unquote(q)
		if err != nil {
			return nil, err
		}
		texts, s = append(texts, t), s[len(q):]
	}
	return texts, nil
}
