package router

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"time"
)

// fewAhead is how many bytes are read ahead where values are large.
const fewAhead = 512

// reader reads the responses of a connection.
type reader struct {
	conn     net.Conn
	l        *link
	buf      []byte
	from, to int
	// large: the last value was large. Then as much is read ahead as a line needs, so that the value itself goes
	// straight to its request.
	large bool
}

// fill reads until so many bytes are in the buffer.
func (in *reader) fill(n int) error {
	for in.to-in.from < n {
		if in.from == in.to {
			in.from, in.to = 0, 0
		} else if in.to == len(in.buf) {
			in.to = copy(in.buf, in.buf[in.from:in.to])
			in.from = 0
		}
		end := len(in.buf)
		if in.large {
			end = min(end, in.from+max(n, fewAhead))
		}
		got, err := in.read(in.buf[in.to:end])
		in.to += got
		if err != nil && in.to-in.from < n {
			return err
		}
	}
	return nil
}

// line reads a line with its end.
func (in *reader) line() ([]byte, error) {
	for looked := 0; ; {
		if i := bytes.IndexByte(in.buf[in.from+looked:in.to], '\n'); i >= 0 {
			line := in.buf[in.from : in.from+looked+i+1]
			in.from += looked + i + 1
			if len(line) < 2 || line[len(line)-2] != '\r' {
				return nil, fmt.Errorf("%w: %.60q", errProtocol, line)
			}
			return line, nil
		}
		if looked = in.to - in.from; looked > maxAnswerLine {
			return nil, fmt.Errorf("%w: a line of more than %d bytes", errProtocol, maxAnswerLine)
		}
		if err := in.fill(looked + 1); err != nil {
			return nil, err
		}
	}
}

// response reads one response into its request.
func (in *reader) response(e entry) (hit bool, err error) {
	for {
		line, err := in.line()
		if err != nil {
			return hit, err
		}
		size := -1
		code, rest := word(line[:len(line)-2])
		switch {
		case e.op.values() && string(code) == "VALUE":
			var key []byte
			key, rest = word(rest)
			_, rest = word(rest)
			field, _ := word(rest)
			if size = number(field); !isNumber(field, false) || size > maxBody || e.r != nil && !e.r.asks(key) {
				return hit, fmt.Errorf("%w: %.60q", errProtocol, line)
			}
		case e.op.meta() && string(code) == "VA":
			field, _ := word(rest)
			if size = number(field); !isNumber(field, false) || size > maxBody {
				return hit, fmt.Errorf("%w: %.60q", errProtocol, line)
			}
		case !expected(e.op, code):
			return hit, fmt.Errorf("%w: %.60q", errProtocol, line)
		case e.op == opMetaGet && string(code) == "HD":
			hit = true
		}
		if e.r != nil {
			if size < 0 && e.op.values() && string(code) != "END" {
				e.r.resp = e.r.resp[:0] // an error in place of values
			}
			e.r.resp = append(e.r.resp, line...)
		}
		if size < 0 {
			return hit, nil
		}
		hit = true
		if err := in.body(e.r, size+2); err != nil || e.op.meta() {
			return hit, err
		}
	}
}

// body reads a value and its end. What is not in the buffer yet goes straight to the request if it is much.
func (in *reader) body(r *request, n int) error {
	in.large = n > len(in.buf)/2
	if have := min(n, in.to-in.from); r != nil && n-have > len(in.buf)/2 {
		r.resp = append(r.resp, in.buf[in.from:in.from+have]...)
		in.from += have
		at := len(r.resp)
		r.resp = slices.Grow(r.resp, n-have)[:at+n-have]
		for at < len(r.resp) {
			got, err := in.read(r.resp[at:])
			at += got
			if err != nil && at < len(r.resp) {
				return err
			}
		}
		return ends(r.resp[at-2:])
	}
	last := [2]byte{}
	for n > 0 {
		if err := in.fill(1); err != nil {
			return err
		}
		got := min(n, in.to-in.from)
		piece := in.buf[in.from : in.from+got]
		for i := max(0, got-2); i < got; i++ {
			last[0], last[1] = last[1], piece[i]
		}
		if r != nil {
			r.resp = append(r.resp, piece...)
		}
		in.from += got
		n -= got
	}
	return ends(last[:])
}

// ends checks the end of a value.
func ends(b []byte) error {
	if b[0] != '\r' || b[1] != '\n' {
		return fmt.Errorf("%w: a value that ends in %#x %#x", errProtocol, b[0], b[1])
	}
	return nil
}

// read reads what has come.
func (in *reader) read(b []byte) (int, error) {
	got, err := in.conn.Read(b)
	in.l.read.Add(int64(got))
	in.l.lastRead.Store(time.Now().UnixNano())
	return got, err
}

// asks reports whether a request is for a key.
func (r *request) asks(key []byte) bool {
	for _, k := range r.keys {
		if bytes.Equal(k, key) {
			return true
		}
	}
	return false
}

// expected reports whether a response to a command may begin with a code.
func expected(o op, code []byte) bool {
	switch string(code) {
	case "ERROR", "CLIENT_ERROR", "SERVER_ERROR":
		return true
	case "END":
		return o.values()
	case "STORED", "NOT_STORED", "EXISTS", "NOT_FOUND", "DELETED", "TOUCHED":
		return o >= opSet && o <= opTouch
	case "VERSION":
		return o == opVersion
	case "HD", "EN", "NF", "NS", "EX", "ME", "OK":
		return o.meta()
	}
	return (o == opIncr || o == opDecr) && isNumber(code, false)
}
