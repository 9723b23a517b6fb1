package advise

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
)

// client asks one server for what a trace asks for, and stores what is not there.
type client struct {
	conn       net.Conn
	r          *bufio.Reader
	out        bytes.Buffer
	value      []byte
	gets, hits int64
	lines      int64 // that the server logs
}

func dial(addr string) (*client, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, r: bufio.NewReaderSize(conn, 64<<10), value: bytes.Repeat([]byte("v"), 8192)}, nil
}

func (c *client) round(keys []int, size func(int) int) error {
	c.out.Reset()
	for _, k := range keys {
		fmt.Fprintf(&c.out, "mg key:%d s\r\n", k)
	}
	if _, err := c.conn.Write(c.out.Bytes()); err != nil {
		return err
	}
	c.out.Reset()
	stored := map[int]bool{}
	for _, k := range keys {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		c.gets++
		c.lines++
		if bytes.HasPrefix(line, []byte("HD")) {
			c.hits++
		} else if !stored[k] {
			stored[k] = true
			fmt.Fprintf(&c.out, "set key:%d 0 0 %d noreply\r\n%s\r\n", k, size(k), c.value[:size(k)])
			c.lines += 2
		}
	}
	_, err := c.conn.Write(c.out.Bytes())
	return err
}
