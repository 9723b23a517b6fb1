package whatif

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// Kind is what a line says.
type Kind uint8

const (
	// Other lines are of no use here: connections, evictions, stores that failed.
	Other Kind = iota
	Get
	Store
	Delete
	// Skipped says that the server left lines out, because they came faster than they were read.
	Skipped
)

// Event is a line of the log of a server.
type Event struct {
	Kind Kind
	// Micros is when it happened, in microseconds since 1970.
	Micros int64
	// Key is as the server sends it: URI encoded. It is valid until the next line.
	Key   []byte
	Found bool
	// Lives is after how many seconds an item expires; 0: never, less than 0: at once.
	Lives int32
	Class int
	// Conn is the number of the connection.
	Conn int32
	// Size is that of the value, in bytes.
	Size int64
	// Lines is how many were left out.
	Lines int64
}

var errLine = errors.New("expected a line of the log of memcached")

// Parse reads a line.
func Parse(line []byte) (e Event, err error) {
	// Servers before 1.6.7 may put the word in brackets.
	if n, ok := bytes.CutPrefix(bytes.Trim(line, "[]"), []byte("skipped=")); ok {
		e.Kind = Skipped
		if e.Lines, err = strconv.ParseInt(string(n), 10, 64); err != nil || e.Lines < 0 {
			return Event{}, fmt.Errorf("%w, got %.100q", errLine, line)
		}
		return e, nil
	}
	if !bytes.HasPrefix(line, []byte("ts=")) {
		return e, fmt.Errorf("%w, got %.100q", errLine, line)
	}
	var kind, status []byte
	for rest := line; len(rest) > 0; {
		var word []byte
		word, rest, _ = bytes.Cut(rest, []byte(" "))
		name, value, _ := bytes.Cut(word, []byte("="))
		switch string(name) {
		case "type":
			kind = value
		case "status":
			status = value
		case "key":
			e.Key = value
		default:
			if err := e.number(string(name), value); err != nil {
				return Event{}, fmt.Errorf("%w, got %.100q: %w", errLine, line, err)
			}
		}
	}
	switch string(kind) {
	case "item_get":
		e.Kind, e.Found = Get, string(status) == "found"
	case "item_store":
		if string(status) == "stored" {
			e.Kind = Store
		}
	case "deleted":
		e.Kind = Delete
	}
	if e.Kind != Other && len(e.Key) == 0 {
		return Event{}, fmt.Errorf("%w, got one without a key: %.100q", errLine, line)
	}
	return e, nil
}

// number reads a field that is a number. Fields that are not used are not looked at.
func (e *Event) number(name string, value []byte) (err error) {
	var n int64
	switch name {
	case "ts":
		whole, part, _ := bytes.Cut(value, []byte("."))
		seconds, err := strconv.ParseInt(string(whole), 10, 64)
		if err != nil || seconds < 0 || seconds > 1<<40 {
			return errors.New("a wrong time")
		}
		// The part after the point is a number of microseconds, without leading zeros.
		micros, err := strconv.ParseInt(string(part), 10, 64)
		if err != nil || micros < 0 || micros > 999_999 {
			return errors.New("a wrong time")
		}
		e.Micros = seconds*1_000_000 + micros
		return nil
	case "ttl":
		// It is unsigned in the log: a time in the past is close to 2^32. Evictions have -1.
		if n, err = strconv.ParseInt(string(value), 10, 64); err == nil {
			e.Lives = int32(n)
		}
	case "clsid":
		if n, err = strconv.ParseInt(string(value), 10, 64); err == nil && (n < 0 || n > 255) {
			err = errors.New("a wrong class")
		}
		e.Class = int(n)
	case "cfd":
		if n, err = strconv.ParseInt(string(value), 10, 32); err == nil {
			e.Conn = int32(n)
		}
	case "size":
		if n, err = strconv.ParseInt(string(value), 10, 64); err == nil && (n < 0 || n > 1<<30) {
			err = errors.New("a wrong size")
		}
		e.Size = n
	}
	return err
}

// keyLength is the length of a key that is URI encoded.
func keyLength(key []byte) int { return max(1, len(key)-2*bytes.Count(key, []byte("%"))) }
