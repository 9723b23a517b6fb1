package victorialogs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/shaledb/shale/internal/jsonscan"
)

const (
	// maxRowBytes bounds a row. VictoriaLogs stores rows of up to 2 MiB, and JSON makes a byte 6 at most.
	maxRowBytes = 16 << 20
	// maxFields bounds the fields of a row. VictoriaLogs takes 2000.
	maxFields = 10_000
)

// field is a name and a value of a row.
type field struct{ name, value []byte }

// rowReader reads a stream of rows, each a line of JSON: an object whose values are strings.
type rowReader struct {
	r      *bufio.Reader
	long   []byte // a row that is longer than the buffer
	arena  []byte // strings that had escapes
	fields []field
	count  int64 // rows that were read
}

var rowReaders = sync.Pool{New: func() any { return &rowReader{r: bufio.NewReaderSize(nil, 64<<10)} }}

func newRowReader(r io.Reader) *rowReader {
	s := rowReaders.Get().(*rowReader)
	s.r.Reset(r)
	s.count = 0
	return s
}

// maxKeptRow bounds the buffers that a reader leaves to the next one.
const maxKeptRow = 256 << 10

// release gives the buffers to the next reader.
func (s *rowReader) release() {
	s.r.Reset(nil)
	clear(s.fields)
	if cap(s.long)+cap(s.arena)+cap(s.fields)*48 <= maxKeptRow {
		rowReaders.Put(s)
	}
}

// next returns the next row, which is valid until it is called again. The error is io.EOF after the last row.
func (s *rowReader) next() ([]field, error) {
	for {
		text, err := s.line()
		if err != nil {
			return nil, err
		}
		if len(text) == 0 {
			continue
		}
		if err := s.parse(text); err != nil {
			return nil, fmt.Errorf("%w: %.*q", err, maxErrorBytes, text)
		}
		s.count++
		return s.fields, nil
	}
}

var (
	errCut  = errors.New("the last row is cut")
	errRow  = errors.New("a row is not an object of strings")
	errLong = fmt.Errorf("a row has more than %d bytes", maxRowBytes)
	errMany = fmt.Errorf("a row has more than %d fields", maxFields)
)

// line returns the next line without its end. A response that ends within a line was cut.
func (s *rowReader) line() ([]byte, error) {
	s.long = s.long[:0]
	for {
		b, err := s.r.ReadSlice('\n')
		if err == nil && len(s.long) == 0 {
			return b[:len(b)-1], nil
		}
		if s.long = append(s.long, b...); len(s.long) > maxRowBytes {
			return nil, errLong
		}
		switch {
		case err == nil:
			return s.long[:len(s.long)-1], nil
		case err == io.EOF && len(s.long) > 0:
			return nil, fmt.Errorf("%w: %.*q", errCut, maxErrorBytes, s.long)
		case err != bufio.ErrBufferFull:
			return nil, err
		}
	}
}

// parse sets the fields of a row.
func (s *rowReader) parse(b []byte) error {
	s.fields, s.arena = s.fields[:0], s.arena[:0]
	i := jsonscan.SkipSpace(b, 0)
	if i == len(b) || b[i] != '{' {
		return errRow
	}
	if i = jsonscan.SkipSpace(b, i+1); i < len(b) && b[i] == '}' {
		return s.end(b, i+1)
	}
	for {
		var f field
		var ok bool
		if f.name, i, ok = s.text(b, i); !ok {
			return errRow
		}
		if i = jsonscan.SkipSpace(b, i); i == len(b) || b[i] != ':' {
			return errRow
		}
		if f.value, i, ok = s.text(b, jsonscan.SkipSpace(b, i+1)); !ok {
			return errRow
		}
		if s.fields = append(s.fields, f); len(s.fields) > maxFields {
			return errMany
		}
		if i = jsonscan.SkipSpace(b, i); i == len(b) {
			return errRow
		}
		switch b[i] {
		case '}':
			return s.end(b, i+1)
		case ',':
			i = jsonscan.SkipSpace(b, i+1)
		default:
			return errRow
		}
	}
}

// end checks that nothing follows.
func (s *rowReader) end(b []byte, i int) error {
	if jsonscan.SkipSpace(b, i) != len(b) {
		return errRow
	}
	return nil
}

// text returns the string that begins at i, and the index after it.
func (s *rowReader) text(b []byte, i int) (text []byte, next int, ok bool) {
	if i >= len(b) || b[i] != '"' {
		return nil, 0, false
	}
	begin := i + 1
	end := jsonscan.PlainEnd(b, begin)
	switch {
	case end == len(b) || b[end] < ' ':
		return nil, 0, false
	case b[end] == '"':
		return b[begin:end], end + 1, true
	}
	// Strings that lie in the arena stay where they are when it grows.
	from := len(s.arena)
	for {
		s.arena = append(s.arena, b[begin:end]...)
		if end == len(b) || b[end] < ' ' {
			return nil, 0, false
		}
		if b[end] == '"' {
			return s.arena[from:len(s.arena):len(s.arena)], end + 1, true
		}
		c := byte(0)
		if end+1 < len(b) {
			c = simpleEscapes[b[end+1]]
		}
		if c == 0 {
			return s.hardText(b, i, from)
		}
		s.arena = append(s.arena, c)
		begin = end + 2
		end = jsonscan.PlainEnd(b, begin)
	}
}

// hardText is text for a string that has escapes of more than a byte, or none that is one.
func (s *rowReader) hardText(b []byte, i, from int) (text []byte, next int, ok bool) {
	end, _ := jsonscan.StringEnd(b, i+1)
	if end < 0 {
		return nil, 0, false
	}
	raw := b[i+1 : end]
	for _, c := range raw {
		if c < ' ' {
			return nil, 0, false
		}
	}
	s.arena, ok = jsonscan.AppendUnescaped(s.arena[:from], raw, jsonscan.JSON)
	if !ok {
		return nil, 0, false
	}
	return s.arena[from:len(s.arena):len(s.arena)], end + 1, true
}

// simpleEscapes are what a letter after a backslash stands for; 0: no single byte.
var simpleEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// valueOf returns the value of a field, or nil.
func valueOf(row []field, name string) []byte {
	for i := range row {
		if string(row[i].name) == name {
			return row[i].value
		}
	}
	return nil
}
