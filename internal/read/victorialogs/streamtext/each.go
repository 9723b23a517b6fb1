package streamtext

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
)

// maxShown is how much of a malformed stream is shown.
const maxShown = 300

// Each visits the fields of a stream. The bytes are those of the spelling, or of a text of its
// own.
func Each(spelling []byte, visit func(name, value []byte) error) error {
	malformed := func() error {
		return fmt.Errorf("%w: malformed stream %.*q", model.ErrInvalid, maxShown, spelling)
	}
	if len(spelling) == 0 { // a row without a stream
		return nil
	}
	if len(spelling) < 2 || spelling[0] != '{' || spelling[len(spelling)-1] != '}' {
		return malformed()
	}
	for s := spelling[1 : len(spelling)-1]; len(s) > 0; {
		eq := bytes.Index(s, []byte(`="`))
		if eq <= 0 {
			return malformed()
		}
		value, size := unquoted(s[eq+1:])
		if size == 0 {
			return malformed()
		}
		if err := visit(s[:eq:eq], value); err != nil {
			return err
		}
		if s = s[eq+1+size:]; len(s) == 0 {
			break
		}
		if s[0] != ',' || len(s) == 1 {
			return malformed()
		}
		s = s[1:]
	}
	return nil
}

// unquoted returns the text in the quotes that s begins with, and the size of both. Size 0 means that it
// cannot be read.
func unquoted(s []byte) (value []byte, size int) {
	if end := bytes.IndexByte(s[1:], '"'); end >= 0 {
		value = s[1 : end+1 : end+1]
		if bytes.IndexByte(value, '\\') < 0 && bytes.IndexByte(value, '\n') < 0 && utf8.Valid(value) {
			return value, end + 2
		}
	}
	quoted, err := strconv.QuotedPrefix(string(s))
	if err != nil {
		return nil, 0
	}
	text, err := strconv.Unquote(quoted)
	if err != nil {
		return nil, 0
	}
	return []byte(text), len(quoted)
}
