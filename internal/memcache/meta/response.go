package meta

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Code is the first word of a response.
type Code uint8

const (
	// HD: done; there is no value.
	HD Code = iota + 1
	// VA: a value follows.
	VA
	// EN: missing, of a Get. NF: missing, of others. NS: not stored. EX: it was changed in the meantime.
	EN
	NF
	NS
	EX
	// MN is the response to a Noop.
	MN
	// ServerError: the server cannot do it. ClientError: it does not take the request. Unknown: it does not know
	// the command.
	ServerError
	ClientError
	Unknown
	// Version and Stat have a Text. End is after the last Stat. OK, and Reset, which is in place of stats.
	Version
	Stat
	End
	OK
	Reset
)

var codes = [...]string{
	HD: "HD", VA: "VA", EN: "EN", NF: "NF", NS: "NS", EX: "EX", MN: "MN", ServerError: "SERVER_ERROR", ClientError: "CLIENT_ERROR", Unknown: "ERROR",
	Version: "VERSION", Stat: "STAT", End: "END", OK: "OK", Reset: "RESET",
}

func (c Code) String() string {
	if int(c) < len(codes) && c != 0 {
		return codes[c]
	}
	return "none"
}

// Failed reports whether the code is an error, which has a Text.
func (c Code) Failed() bool { return c == ServerError || c == ClientError || c == Unknown }

// Response is the line of a response. After that of a VA come Size bytes and CR LF.
type Response struct {
	Code  Code
	Size  int
	Flags Flags
	// Text is of codes that have no flags. It is valid until the next response is read.
	Text []byte
}

// maxLine bounds a line of a response: a key in base64 and all flags have less than 700 bytes, a stat may
// have a path.
const maxLine = 4 << 10

// Reader reads responses from a connection.
type Reader struct {
	r        *bufio.Reader
	maxValue int
	left     int // bytes of a value that was not read
}

// NewReader returns a reader that takes values of at most so many bytes.
func NewReader(r io.Reader, maxValue int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 64<<10), maxValue: maxValue}
}

// Read reads the line of the next response. A value that the caller has not read is skipped.
func (r *Reader) Read(resp *Response) error {
	if r.left > 0 {
		if err := r.skip(); err != nil {
			return err
		}
	}
	line, err := r.line()
	if err != nil {
		return err
	}
	if err := resp.parse(line); err != nil {
		return err
	}
	if resp.Code == VA {
		if resp.Size > r.maxValue {
			return fmt.Errorf("%w: the server sends a value of %d bytes, expected at most %d", ErrProtocol, resp.Size, r.maxValue)
		}
		r.left = resp.Size + len("\r\n")
	}
	return nil
}

// Value reads the value of the response that was read last. Its length must be the size of the value.
func (r *Reader) Value(dst []byte) error {
	if len(dst) != r.left-len("\r\n") {
		return fmt.Errorf("a buffer of %d bytes for a value of %d", len(dst), r.left-len("\r\n"))
	}
	r.left = 0
	if _, err := io.ReadFull(r.r, dst); err != nil {
		return cut(err)
	}
	return r.end()
}

func (r *Reader) skip() error {
	n := r.left - len("\r\n")
	r.left = 0
	if _, err := r.r.Discard(n); err != nil {
		return cut(err)
	}
	return r.end()
}

// end reads the end of a value. If it is not there, the value had another length than its line said.
func (r *Reader) end() error {
	crlf, err := r.r.Peek(len("\r\n"))
	if err != nil {
		return cut(err)
	}
	if string(crlf) != "\r\n" {
		return fmt.Errorf("%w: expected the end of a value, got %q", ErrProtocol, crlf)
	}
	_, _ = r.r.Discard(len(crlf)) // they are in the buffer
	return nil
}

// line returns the next line without its end.
func (r *Reader) line() ([]byte, error) {
	line, err := r.r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull) || len(line) > maxLine:
		return nil, fmt.Errorf("%w: a line has more than %d bytes", ErrProtocol, maxLine)
	case err != nil && len(line) > 0:
		return nil, cut(err)
	case err != nil:
		return nil, err
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}

// cut says that a connection ended within a response.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (resp *Response) parse(line []byte) error {
	*resp = Response{}
	word, rest := field(line)
	for c := HD; int(c) < len(codes); c++ {
		if string(word) == codes[c] {
			resp.Code = c
			break
		}
	}
	switch resp.Code {
	case 0:
		return fmt.Errorf("%w: expected a response, got %q", ErrProtocol, clip(line))
	case HD, EN, NF, NS, EX, MN:
		return resp.Flags.parse(rest)
	case VA:
		word, rest = field(rest)
		size, err := number(word)
		if err != nil || size > 1<<31-1 {
			return fmt.Errorf("%w: expected the size of a value, got %q", ErrProtocol, clip(word))
		}
		resp.Size = int(size)
		return resp.Flags.parse(rest)
	}
	resp.Text = rest
	return nil
}
