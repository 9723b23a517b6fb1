package meta

import (
	"fmt"
	"strconv"
)

// MaxKey is the greatest length of a key in bytes.
const MaxKey = 250

// Verb says what a request does.
type Verb uint8

const (
	// Get is mg, Set is ms, Delete is md. Noop is mn: its response comes after those of all requests before it.
	Get Verb = iota + 1
	Set
	Delete
	Noop
)

var verbs = [...]string{Get: "mg", Set: "ms", Delete: "md", Noop: "mn"}

func (v Verb) String() string {
	if int(v) < len(verbs) && v != 0 {
		return verbs[v]
	}
	return "unknown"
}

// Request is the line of a request. After that of a Set come Size bytes and CR LF.
type Request struct {
	Verb  Verb
	Key   []byte
	Size  int
	Flags Flags
}

// ValidKey reports whether bytes may be a key: at most MaxKey, without spaces and control characters.
func ValidKey(key []byte) bool {
	if len(key) == 0 || len(key) > MaxKey {
		return false
	}
	for _, c := range key {
		if c <= ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// Append appends the line with its end. The key must be valid.
func (r *Request) Append(b []byte) []byte {
	b = append(b, verbs[r.Verb]...)
	if r.Verb != Noop {
		b = append(b, ' ')
		b = append(b, r.Key...)
		if r.Verb == Set {
			b = append(b, ' ')
			b = strconv.AppendInt(b, int64(r.Size), 10)
		}
		b = r.Flags.append(b)
	}
	return append(b, '\r', '\n')
}

// Parse reads a line without its end. The key refers to the line.
func (r *Request) Parse(line []byte) error {
	*r = Request{}
	word, rest := field(line)
	for v := Get; v <= Noop; v++ {
		if string(word) == verbs[v] {
			r.Verb = v
		}
	}
	switch r.Verb {
	case 0:
		return fmt.Errorf("%w: expected mg, ms, md or mn, got %q", ErrProtocol, clip(word))
	case Noop:
		return nil
	}
	if r.Key, rest = field(rest); !ValidKey(r.Key) {
		return fmt.Errorf("%w: expected a key of 1 to %d printable characters, got %d bytes", ErrProtocol, MaxKey, len(r.Key))
	}
	if r.Verb == Set {
		word, rest = field(rest)
		size, err := number(word)
		if err != nil || size > 1<<31-1 {
			return fmt.Errorf("%w: expected the size of the value, got %q", ErrProtocol, clip(word))
		}
		r.Size = int(size)
	}
	if err := r.Flags.parse(rest); err != nil {
		return err
	}
	r.Flags.Key = nil // a request has k without a token
	return nil
}
