package renders

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Lines sends all points up to an end to a Graphite address, in the order of their times, and returns their
// number. The points may not be readable yet when it returns.
func Lines(ctx context.Context, address string, end time.Time, progress io.Writer) (int, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	return lines(conn, sets(), end, progress)
}

func lines(to io.Writer, all []set, end time.Time, progress io.Writer) (int, error) {
	w := bufio.NewWriterSize(to, 1<<20)
	sent := 0
	for _, s := range all {
		names := make([]string, s.series)
		for i := range names {
			names[i] = s.name(i)
		}
		var line []byte
		for at := first(s, end); at <= end.Unix(); at += step {
			for i, name := range names {
				line = append(append(line[:0], name...), ' ')
				line = append(strconv.AppendFloat(line, value(i, at), 'f', -1, 64), ' ')
				line = append(strconv.AppendInt(line, at, 10), '\n')
				if _, err := w.Write(line); err != nil {
					return sent, err
				}
			}
			sent += len(names)
		}
		fmt.Fprintf(progress, "%d points sent\n", sent)
	}
	return sent, w.Flush()
}

func first(s set, end time.Time) int64 { return end.Unix() - int64(s.span/time.Second) + step }

// Whisper writes all points up to an end as whisper files of one archive.
func Whisper(dir string, end time.Time) error {
	for _, s := range sets() {
		for i := range s.series {
			path := filepath.Join(dir, filepath.FromSlash(strings.ReplaceAll(s.name(i), ".", "/"))+".wsp")
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, whisperFile(i, first(s, end), int(s.span/time.Second)/step), 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// whisperFile returns a file of whisper: its header (method average, longest retention, xFilesFactor, number
// of archives), the description of the archive (offset, step, points), and the points by slot, of which the
// first has the oldest time.
func whisperFile(series int, from int64, points int) []byte {
	const header = 16 + 12
	b := make([]byte, 0, header+12*points)
	for _, n := range []uint32{1, uint32(points * step), math.Float32bits(0.5), 1, header, step, uint32(points)} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	for i := range points {
		at := from + int64(i)*step
		b = binary.BigEndian.AppendUint32(b, uint32(at))
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(value(series, at)))
	}
	return b
}
