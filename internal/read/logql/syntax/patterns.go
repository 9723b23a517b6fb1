package syntax

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// PatternPiece is a literal or a capture of a pattern.
type PatternPiece struct {
	// Capture says that the piece is <Text>; the name _ throws away what it captures.
	Capture bool
	Text    string
}

// Named reports whether the piece is a capture with a name.
func (p PatternPiece) Named() bool { return p.Capture && p.Text != "_" }

func (p PatternPiece) String() string {
	if p.Capture {
		return "<" + p.Text + ">"
	}
	return p.Text
}

// PatternError says what is wrong with a pattern. It is of class [model.ErrInvalid].
type PatternError struct {
	msg string
}

// Error returns the text that Loki gives.
func (e *PatternError) Error() string { return e.msg }

// Unwrap gives the class.
func (e *PatternError) Unwrap() error { return model.ErrInvalid }

func patternError(format string, args ...any) *PatternError {
	return &PatternError{msg: fmt.Sprintf(format, args...)}
}

// ParsePattern parses the pattern of | pattern: it has a named capture, no name twice, and no capture next to
// another.
func ParsePattern(pattern string) ([]PatternPiece, error) {
	pieces := cutPattern(pattern)
	if len(pieces) == 0 {
		return nil, patternError("parse error at line 1, col 1: syntax error: unexpected $end, expecting IDENTIFIER or LITERAL")
	}
	names := map[string]bool{}
	for _, p := range pieces {
		if p.Named() {
			names[p.Text] = false
		}
	}
	if len(names) == 0 {
		return nil, patternError("at least one capture is required")
	}
	if err := checkConsecutive(pieces); err != nil {
		return nil, err
	}
	for _, p := range pieces {
		if !p.Named() {
			continue
		}
		if names[p.Text] {
			return nil, patternError("duplicate capture name (%s): invalid expression", p.Text)
		}
		names[p.Text] = true
	}
	return pieces, nil
}

// ParseLinePattern parses the pattern of |> and !>: its captures have no names, and none is next to another.
// It may be empty.
func ParseLinePattern(pattern string) ([]PatternPiece, error) {
	pieces := cutPattern(pattern)
	if err := checkConsecutive(pieces); err != nil {
		return nil, err
	}
	for _, p := range pieces {
		if p.Named() {
			return nil, patternError("named captures are not allowed: found '%s'", p)
		}
	}
	return pieces, nil
}

func checkConsecutive(pieces []PatternPiece) error {
	for i := 1; i < len(pieces); i++ {
		if pieces[i-1].Capture && pieces[i].Capture {
			return patternError("found consecutive capture '%s%s': invalid expression", pieces[i-1], pieces[i])
		}
	}
	return nil
}

// cutPattern cuts a pattern into captures and the literals between them. A < that begins no capture is a
// literal.
func cutPattern(pattern string) []PatternPiece {
	var pieces []PatternPiece
	literal := 0 // its start
	for i := 0; i < len(pattern); {
		name := captureName(pattern[i:])
		if name == "" {
			i++
			continue
		}
		if literal < i {
			pieces = append(pieces, PatternPiece{Text: pattern[literal:i]})
		}
		pieces = append(pieces, PatternPiece{Capture: true, Text: name})
		i += len(name) + len("<>")
		literal = i
	}
	if literal < len(pattern) {
		pieces = append(pieces, PatternPiece{Text: pattern[literal:]})
	}
	return pieces
}

// captureName returns the name of the capture that s begins with, or "".
func captureName(s string) string {
	if s[0] != '<' {
		return ""
	}
	end := 1
	for end < len(s) && (s[end] == '_' || 'a' <= s[end]|0x20 && s[end]|0x20 <= 'z' || '0' <= s[end] && s[end] <= '9') {
		end++
	}
	if end == len(s) || s[end] != '>' || !isName(s[1:end]) {
		return ""
	}
	return s[1:end]
}
