package carbonconf

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
)

const (
	// MaxBytes bounds a file. Fleets have some hundred rules, in some ten kilobytes.
	MaxBytes = 4 << 20
	maxLine  = 64 << 10
)

// File is a parsed file.
type File struct {
	Path     string
	Sections []*Section
}

// Section is a section with its keys. They are in the order of the file; names are in lower case.
type Section struct {
	Name string
	Line int
	Keys []Key
	path string
}

// Key is one setting.
type Key struct {
	Name, Value string
	Line        int
}

// Get returns a key by its name in lower case, or nil.
func (s *Section) Get(name string) *Key {
	for i := range s.Keys {
		if s.Keys[i].Name == name {
			return &s.Keys[i]
		}
	}
	return nil
}

// Errorf returns an error about a line of the file, of class invalid.
func (s *Section) Errorf(line int, format string, args ...any) error {
	return Errorf(s.path, line, "[%s]: %w", s.Name, fmt.Errorf(format, args...))
}

// Errorf returns an error about a line of a file, of class invalid.
func Errorf(path string, line int, format string, args ...any) error {
	return fmt.Errorf("%w: %s:%d: %w", model.ErrInvalid, path, line, fmt.Errorf(format, args...))
}

// ReadFile returns the content of a file, of at most MaxBytes. It never reads more, since the size of a
// device or a pipe is not known beforehand.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("%w: %s is too large: must have at most %d bytes", model.ErrInvalid, path, MaxBytes)
	}
	return text, nil
}

// Lines calls fn with each line of a text that is neither empty nor a comment, without white space around it.
func Lines(path string, text []byte, fn func(line int, text string) error) error {
	return lines(path, text, func(n int, raw string) error {
		if raw = strings.TrimSpace(raw); raw == "" || raw[0] == '#' {
			return nil
		}
		return fn(n, raw)
	})
}

func lines(path string, text []byte, fn func(n int, raw string) error) error {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	scan := bufio.NewScanner(bytes.NewReader(text))
	scan.Buffer(nil, maxLine)
	n := 0
	for scan.Scan() {
		n++
		if !utf8.Valid(scan.Bytes()) {
			return Errorf(path, n, "the line is not UTF-8")
		}
		if err := fn(n, scan.Text()); err != nil {
			return err
		}
	}
	if scan.Err() != nil {
		return Errorf(path, n+1, "the line is too long: must have at most %d bytes", maxLine)
	}
	return nil
}

// Parse parses a file of sections. As in configparser, a line that is indented deeper than its key goes on
// with the value, comments are whole lines that begin with # or ;, and %% is a percent sign.
func Parse(path string, text []byte) (*File, error) {
	p := parser{file: &File{Path: path}, sections: map[string]int{}}
	if err := lines(path, text, p.line); err != nil {
		return nil, err
	}
	for _, s := range p.file.Sections {
		for i := range s.Keys {
			k := &s.Keys[i]
			if strings.Contains(k.Value, "%(") {
				return nil, s.Errorf(k.Line, "%s: values with %%(name)s are not supported: write the value in full", k.Name)
			}
			k.Value = strings.ReplaceAll(strings.TrimSpace(k.Value), "%%", "%")
		}
	}
	return p.file, nil
}

type parser struct {
	file     *File
	sections map[string]int // lines by name
	section  *Section
	key      *Key // nil: no value can go on
	indent   int  // of the key
}

func (p *parser) line(n int, raw string) error {
	text := strings.TrimSpace(raw)
	if text == "" || text[0] == '#' || text[0] == ';' {
		return nil
	}
	indent := len(raw) - len(strings.TrimLeftFunc(raw, unicode.IsSpace))
	if p.key != nil && indent > p.indent {
		p.key.Value += "\n" + text
		return nil
	}
	p.indent = indent
	if text[0] == '[' {
		return p.header(n, text)
	}
	if p.section == nil {
		return Errorf(p.file.Path, n, "expected a section such as [default], found %q", Short(text))
	}
	at := strings.IndexAny(text, "=:")
	if at <= 0 {
		return p.section.Errorf(n, "expected key = value, found %q", Short(text))
	}
	name := strings.ToLower(strings.TrimSpace(text[:at]))
	if old := p.section.Get(name); old != nil {
		return p.section.Errorf(n, "%s is already on line %d", name, old.Line)
	}
	p.section.Keys = append(p.section.Keys, Key{name, strings.TrimSpace(text[at+1:]), n})
	p.key = &p.section.Keys[len(p.section.Keys)-1]
	return nil
}

func (p *parser) header(n int, text string) error {
	end := strings.LastIndexByte(text, ']')
	if end < 2 {
		return Errorf(p.file.Path, n, "expected a section such as [default], found %q", Short(text))
	}
	name := text[1:end]
	if old := p.sections[name]; old != 0 {
		return Errorf(p.file.Path, n, "section [%s] is already on line %d", name, old)
	}
	p.sections[name] = n
	p.section = &Section{Name: name, Line: n, path: p.file.Path}
	p.file.Sections = append(p.file.Sections, p.section)
	p.key = nil
	return nil
}

// Short cuts a text for an error.
func Short(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
