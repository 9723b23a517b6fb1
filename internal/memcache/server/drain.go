package server

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/memcache/items"
	"github.com/shaledb/shale/internal/memcache/meta"
)

const (
	// drainBatch is how many items a successor is sent before it is asked whether it has them.
	drainBatch   = 1000
	drainTimeout = time.Minute
)

// drain is a connection to a successor.
type drain struct {
	conn net.Conn
	w    *bufio.Writer
	r    *bufio.Reader
	now  uint32

	batch                int
	sent, bytes, refused int64
}

// DrainTo gives a successor all items that it does not have: those of memory that were used last first, then
// those of the disk, the newest first. No connection is served any more.
func (s *Server) DrainTo(ctx context.Context, addr string) error {
	dialer := net.Dialer{Timeout: 10 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("the successor: %w", err)
	}
	defer func() { _ = conn.Close() }() // it was told everything
	d := &drain{conn: conn, w: bufio.NewWriterSize(conn, 256<<10), r: bufio.NewReader(conn), now: uint32(s.o.Now().Unix())}
	s.o.Logger.Info("giving items to the successor", "to", addr)
	if err = d.memory(s.items); err == nil && s.disk != nil {
		err = s.disk.Each(func(key string, value []byte) (bool, error) {
			n, value, ok := parseDisk(value)
			if !ok || n.Marks&items.Stale != 0 || s.items.IsOver(n.CAS, n.Expires, d.now) {
				return true, nil
			}
			return true, d.send([]byte(key), value, &n)
		})
	}
	if err == nil {
		err = d.ask()
	}
	s.o.Logger.Info("gave items to the successor", "to", addr, "items", d.sent, "bytes", d.bytes, "refused", d.refused, "err", err)
	if err != nil {
		return fmt.Errorf("the successor %s: %w", addr, err)
	}
	return nil
}

// memory sends the items of memory. The successor keeps what comes last longest.
func (d *drain) memory(from *items.Store) error {
	shards := from.Shards()
	for i := range shards {
		for it := range shards[i].Oldest(d.now) {
			if it.Has(items.Stale) {
				continue // the successor would not know that it is
			}
			n := items.Draft{Flags: it.Flags(), Expires: it.Expires(), Marks: it.Marks()}
			if err := d.send(it.Key(), it.Value(), &n); err != nil {
				return err
			}
		}
	}
	return nil
}

// send sends an item, which the successor takes unless it has one of that key.
func (d *drain) send(key, value []byte, n *items.Draft) error {
	binary := !meta.ValidKey(key)
	if binary && base64.StdEncoding.EncodedLen(len(key)) > meta.MaxKey {
		d.refused++ // no meta command can name it
		return nil
	}
	line := append(d.w.AvailableBuffer(), "ms "...)
	if binary {
		line = appendBase64(line, key)
	} else {
		line = append(line, key...)
	}
	line = strconv.AppendInt(append(line, ' '), int64(len(value)), 10)
	line = strconv.AppendUint(append(line, " ME q F"...), uint64(n.Flags), 10)
	line = strconv.AppendUint(append(line, " T"...), uint64(d.ttl(n.Expires)), 10)
	if binary {
		line = append(line, " b"...)
	}
	line = append(line, '\r', '\n')
	if err := d.conn.SetDeadline(time.Now().Add(drainTimeout)); err != nil {
		return err
	}
	for _, b := range [][]byte{line, value, []byte("\r\n")} {
		if _, err := d.w.Write(b); err != nil {
			return err
		}
	}
	d.sent++
	d.bytes += int64(len(value))
	if d.batch++; d.batch < drainBatch {
		return nil
	}
	return d.ask()
}

// ttl is what an item has left, in the form of a request.
func (d *drain) ttl(expires uint32) uint32 {
	if expires == 0 {
		return 0
	}
	return max(expires, d.now+1) // more than 30 days after 1970: a point of time
}

// ask waits until the successor has taken what was sent. Those of the requests that it did not carry out have
// a line: it has the item, or refuses it.
func (d *drain) ask() error {
	d.batch = 0
	if _, err := d.w.WriteString("mn\r\n"); err != nil {
		return err
	}
	if err := d.w.Flush(); err != nil {
		return err
	}
	for {
		line, err := d.r.ReadString('\n')
		switch {
		case err == io.EOF:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
		switch line = strings.TrimRight(line, "\r\n"); {
		case line == "MN":
			return nil
		case line == "NS": // it has one
		case strings.HasPrefix(line, "SERVER_ERROR"):
			d.refused++
		default:
			return fmt.Errorf("expected the outcome of a set, got %.100q", line)
		}
	}
}

func appendBase64(b, key []byte) []byte { return base64.StdEncoding.AppendEncode(b, key) }
