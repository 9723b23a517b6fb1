package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/shaledb/shale/internal/model"
)

// maxRowBytes bounds a row of a CSV file.
const maxRowBytes = 64 << 10

// columns are the indexes of the columns that a CSV file has, or -1.
type columns struct{ time, key, size, query, age, kind int }

// headings are the names of columns that common traces use.
func headings() map[string]func(*columns) *int {
	m := make(map[string]func(*columns) *int)
	for field, names := range map[string]struct {
		dst   func(*columns) *int
		names string
	}{
		"time":  {func(c *columns) *int { return &c.time }, "time timestamp ts"},
		"key":   {func(c *columns) *int { return &c.key }, "key id obj_id object lbn"},
		"size":  {func(c *columns) *int { return &c.size }, "size bytes obj_size value_size"},
		"query": {func(c *columns) *int { return &c.query }, "query query_id"},
		"age":   {func(c *columns) *int { return &c.age }, "age age_seconds"},
		"kind":  {func(c *columns) *int { return &c.kind }, "request"},
	} {
		m[field] = names.dst
		for name := range strings.FieldsSeq(names.names) {
			m[name] = names.dst
		}
	}
	return m
}

// ReadCSV reads a trace from a CSV file. Its first row names the columns: time (in seconds), key and size,
// and if it has them query (any text), age (in seconds) and kind (read or write). Other columns are
// ignored. Without queries, each request is a query of its own.
func ReadCSV(name string, r io.Reader, l Limits) (*Trace, error) {
	rows := csv.NewReader(&lineLimit{r: r})
	rows.ReuseRecord = true
	head, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %s: expected a first row with the names of the columns, got an empty file", model.ErrInvalid, name)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %v", model.ErrInvalid, name, err)
	}
	c, err := findColumns(head)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %v", model.ErrInvalid, name, err)
	}
	b := newBuilder(name, l)
	for n := uint32(0); ; n++ {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %v", model.ErrInvalid, name, err)
		}
		if err := c.addRow(b, row, n); err != nil {
			line, _ := rows.FieldPos(0)
			return nil, fmt.Errorf("%s, line %d: %w", name, line, err)
		}
	}
	return b.finish()
}

func findColumns(head []string) (c columns, err error) {
	c = columns{-1, -1, -1, -1, -1, -1}
	known := headings()
	for i, name := range head {
		dst := known[strings.ToLower(strings.TrimSpace(name))]
		if dst == nil {
			continue
		}
		if at := dst(&c); *at < 0 {
			*at = i
		}
	}
	for _, need := range []struct {
		name string
		at   int
	}{{"time", c.time}, {"key (or id, obj_id, object, lbn)", c.key}, {"size (or bytes)", c.size}} {
		if need.at < 0 {
			return c, fmt.Errorf("expected a column %s, got the columns %q", need.name, head)
		}
	}
	return c, nil
}

// addRow adds a row. Its number stands for its query if the file has none.
func (c *columns) addRow(b *builder, row []string, n uint32) error {
	seconds, err := strconv.ParseFloat(row[c.time], 64)
	if err != nil || math.IsNaN(seconds) || math.Abs(seconds) > 1e12 {
		return fmt.Errorf("%w: expected a time in seconds, got %.40q", model.ErrInvalid, row[c.time])
	}
	size, err := strconv.ParseUint(row[c.size], 10, 32)
	if err != nil {
		return fmt.Errorf("%w: expected a size in bytes below 4 GiB, got %.40q", model.ErrInvalid, row[c.size])
	}
	query := n
	if c.query >= 0 {
		query = uint32(xxh3.HashString(row[c.query]))
	}
	age := int32(UnknownAge)
	if c.age >= 0 && row[c.age] != "" {
		a, err := strconv.ParseFloat(row[c.age], 64)
		if err != nil || math.IsNaN(a) || a > math.MaxInt32 {
			return fmt.Errorf("%w: expected an age in seconds, got %.40q", model.ErrInvalid, row[c.age])
		}
		age = int32(max(a, UnknownAge))
	}
	write := false
	if c.kind >= 0 {
		switch row[c.kind] {
		case "read", "":
		case "write":
			write = true
		default:
			return fmt.Errorf("%w: expected the kind read or write, got %.40q", model.ErrInvalid, row[c.kind])
		}
	}
	return b.add(int64(seconds*1000), xxh3.HashString(row[c.key]), uint32(size), query, age, write)
}

// finish returns the trace, or an error if it has no requests.
func (b *builder) finish() (*Trace, error) {
	if len(b.trace.Requests) == 0 {
		return nil, fmt.Errorf("%w: %s: the trace has no requests", model.ErrInvalid, b.trace.Name)
	}
	return b.trace, nil
}

// lineLimit fails at a line that is too long, which a CSV reader would keep in memory whole.
type lineLimit struct {
	r io.Reader
	n int // bytes since the last end of a line
}

func (l *lineLimit) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	for _, c := range p[:n] {
		if l.n++; c == '\n' {
			l.n = 0
		}
		if l.n > maxRowBytes {
			return 0, fmt.Errorf("a row has more than %d bytes", maxRowBytes)
		}
	}
	return n, err
}
