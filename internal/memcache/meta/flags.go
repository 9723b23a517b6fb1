package meta

import (
	"errors"
	"fmt"
	"strconv"
)

// ErrProtocol is the class of errors about bytes that are not of the protocol. What follows on the connection
// cannot be trusted.
var ErrProtocol = errors.New("not the memcached protocol")

// Letters is a set of flags.
type Letters uint64

// Of returns the set of some letters of the alphabet.
func Of(letters string) (s Letters) {
	for i := range len(letters) {
		s |= bit(letters[i])
	}
	return s
}

// Has reports whether a letter is in the set.
func (s Letters) Has(letter byte) bool { return s&bit(letter) != 0 }

// bit returns the set of one letter, or none for another byte.
func bit(letter byte) Letters {
	switch {
	case 'a' <= letter && letter <= 'z':
		return 1 << (letter - 'a')
	case 'A' <= letter && letter <= 'Z':
		return 1 << (letter - 'A' + 26)
	}
	return 0
}

// Flags are those of a request or a response. Letters says which there are; the other fields are the tokens
// of those that have one.
//
// In a request, v asks for the value, f, s, t, c and k for client flags, size, time to live, unique number
// and key, b says that the key is in base64, and q leaves out responses that say nothing new. In a response,
// W says that this client is to bring the value, Z that another one is, and X that the value is stale.
type Flags struct {
	Letters Letters
	// Opaque is of O: the server repeats it.
	Opaque uint64
	// TTL is of T in a request and of t in a response, in seconds; -1: without end. More than 30 days are
	// seconds since 1970.
	TTL int64
	// Vivify is of N: a missing value is made, empty, for that many seconds. Recache is of R: whoever reads a
	// value that has fewer seconds left is told to bring it again.
	Vivify, Recache int64
	// Client is of F in a request and of f in a response.
	Client uint32
	// Size is of s in a response.
	Size int64
	// CAS is of C in a request and of c in a response.
	CAS uint64
	// Mode is of M in a request.
	Mode byte
	// Key is of k in a response. It is valid until the next response is read.
	Key []byte
}

// tokens are the letters that have a token in a request.
var tokens = Of("OTNRFCM")

// order is the order in which the letters of a request are written.
const order = "vfstckqbIOTNRFCM"

// append appends the flags of a request.
func (f *Flags) append(b []byte) []byte {
	for i := range len(order) {
		letter := order[i]
		if !f.Letters.Has(letter) {
			continue
		}
		b = append(b, ' ', letter)
		switch letter {
		case 'O':
			b = strconv.AppendUint(b, f.Opaque, 10)
		case 'T':
			b = strconv.AppendInt(b, f.TTL, 10)
		case 'N':
			b = strconv.AppendInt(b, f.Vivify, 10)
		case 'R':
			b = strconv.AppendInt(b, f.Recache, 10)
		case 'F':
			b = strconv.AppendUint(b, uint64(f.Client), 10)
		case 'C':
			b = strconv.AppendUint(b, f.CAS, 10)
		case 'M':
			b = append(b, f.Mode)
		}
	}
	return b
}

// parse reads flags that are separated by spaces. Letters that it does not know are in the set, without their
// tokens: later versions of the server may send them.
func (f *Flags) parse(line []byte) error {
	for {
		var word []byte
		if word, line = field(line); len(word) == 0 {
			return nil
		}
		letter, token := word[0], word[1:]
		one := bit(letter)
		if one == 0 {
			return fmt.Errorf("%w: expected a flag, got %q", ErrProtocol, clip(word))
		}
		f.Letters |= one
		if len(token) == 0 {
			continue
		}
		if err := f.token(letter, token); err != nil {
			return fmt.Errorf("%w: flag %q: %v", ErrProtocol, clip(word), err)
		}
	}
}

func (f *Flags) token(letter byte, token []byte) (err error) {
	switch letter {
	case 'O':
		f.Opaque, err = number(token)
	case 'T', 't':
		f.TTL, err = signed(token)
	case 'N':
		f.Vivify, err = signed(token)
	case 'R':
		f.Recache, err = signed(token)
	case 'F', 'f':
		var n uint64
		if n, err = number(token); n > 1<<32-1 {
			return errors.New("more than 32 bits")
		}
		f.Client = uint32(n)
	case 's':
		f.Size, err = signed(token)
	case 'C', 'c':
		f.CAS, err = number(token)
	case 'M':
		if f.Mode = token[0]; len(token) > 1 {
			return errors.New("expected one letter")
		}
	case 'k':
		f.Key = token
	}
	return err
}

// field returns the first word of a line, and the rest.
func field(line []byte) (word, rest []byte) {
	for len(line) > 0 && line[0] == ' ' {
		line = line[1:]
	}
	for i, c := range line {
		if c == ' ' {
			return line[:i], line[i+1:]
		}
	}
	return line, nil
}

var errNumber = errors.New("not a number of 64 bits")

// number parses a decimal number without making a string of it.
func number(b []byte) (n uint64, err error) {
	if len(b) == 0 || len(b) > 20 {
		return 0, errNumber
	}
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 || n > (1<<64-1)/10 || n*10 > 1<<64-1-d {
			return 0, errNumber
		}
		n = n*10 + d
	}
	return n, nil
}

func signed(b []byte) (int64, error) {
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	n, err := number(b)
	if err != nil || n > 1<<63-1 {
		return 0, errNumber
	}
	if negative {
		return -int64(n), nil
	}
	return int64(n), nil
}

// clip bounds what an error quotes.
func clip(b []byte) []byte { return b[:min(len(b), 64)] }
