package advise

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/memcache/slab"
	"github.com/shaledb/shale/internal/memcache/stats"
)

func pow(x, y float64) float64 { return math.Pow(x, y) }

// maxPasted bounds the lines of a file.
const maxPasted = 50_000_000

var (
	// displayRow is a line of `memcached-tool ADDR display`. Newer versions have one column more, older ones
	// lack the last two.
	displayRow = regexp.MustCompile(`^\s*(\d+)\s+([0-9.]+)([BKM])\s+(\d+)s?\s+(\d+)\s+(\d+)\s+(yes|no)\b\s*(\d*)`)
	// sizeRow is a line of `stats sizes`, of `memcached-tool ADDR sizes`, or of a list of sizes and counts.
	sizeRow = regexp.MustCompile(`^\s*(?:STAT\s+)?(\d+)[\s,;:]+(\d+)\s*$`)
)

// Read reads what an operator kept of a server: the table of memcached-tool, a histogram of sizes, or a dump
// of items. Lines of other forms, such as headings, are passed over, unless there is nothing else.
func Read(name string, r io.Reader) (*Server, error) {
	s := &Server{Addr: name, Config: slab.Default()}
	lines := bufio.NewScanner(r)
	var rows []row
	other := ""
	for n := 0; lines.Scan(); n++ {
		if n == maxPasted {
			return nil, fmt.Errorf("%s has more than %d lines", name, maxPasted)
		}
		line := strings.TrimRight(lines.Text(), "\r")
		if m := displayRow.FindStringSubmatch(line); m != nil {
			r, err := parseRow(m)
			if err != nil {
				return nil, fmt.Errorf("%s, line %d: %w", name, n+1, err)
			}
			rows = append(rows, r)
		} else if m := sizeRow.FindStringSubmatch(line); m != nil {
			items := histogram(stats.Stats{{Name: m[1], Value: m[2]}})
			if items == nil && m[2] != "0" {
				return nil, fmt.Errorf("%s, line %d: expected the size of an item in bytes, up to 1 GB, and a count, got %.60q", name, n+1, line)
			}
			s.Items, s.Exact = append(s.Items, items...), true
		} else if it, err := stats.ParseItem(line); err == nil {
			head := slab.ItemSize(it.KeyLength(), 0, 0, true) - len("\r\n")
			s.Items, s.Exact = append(s.Items, slab.Items{Size: it.Size, Head: min(uint32(head), it.Size), Count: 1}), true
		} else if other == "" && strings.TrimSpace(line) != "" {
			other = line
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	switch {
	case rows != nil && s.Items != nil:
		return nil, fmt.Errorf("%s has both a table of slab classes and a histogram of sizes: give one of them", name)
	case rows != nil:
		return s, s.display(rows)
	case s.Items == nil:
		return nil, fmt.Errorf("%s: expected the table of memcached-tool, lines of SIZE COUNT, or the dump of lru_crawler metadump, got %.60q", name, other)
	}
	return s, nil
}

// row is a row of the table of memcached-tool.
type row struct {
	class Class
	size  string // as it is written
	unit  float64
}

func parseRow(m []string) (r row, err error) {
	var n [5]int64
	for i, text := range []string{m[1], m[4], m[5], m[6], m[8]} {
		if text == "" {
			continue
		}
		if n[i], err = strconv.ParseInt(text, 10, 64); err != nil || n[i] > 1<<50 {
			return r, fmt.Errorf("expected a number, got %.40q", text)
		}
	}
	r.class = Class{ID: int(min(n[0], 1<<20)), Age: n[1], Pages: n[2], Items: n[3], Used: n[3], Evicted: n[4]}
	r.size, r.unit = m[2], map[string]float64{"B": 1, "K": 1 << 10, "M": 1 << 20}[m[3]]
	if v, err := strconv.ParseFloat(m[2], 64); err != nil || v*r.unit < 1 || v*r.unit > 1<<30 {
		return r, fmt.Errorf("expected the size of an item, got %.40q", m[2]+m[3])
	}
	return r, nil
}

// shows reports whether a size is written as in the row.
func (r *row) shows(size uint32) bool {
	if r.unit == 1 {
		return strconv.Itoa(int(size)) == r.size
	}
	return strconv.FormatFloat(float64(size)/r.unit, 'f', 1, 64) == r.size
}

// display finds out the growth factor that the sizes of a table follow from, and so the exact sizes.
func (s *Server) display(rows []row) error {
	ids := make([]int, len(rows))
	for i, r := range rows {
		ids[i] = r.class.ID
		for _, before := range ids[:i] {
			if before == r.class.ID {
				return fmt.Errorf("%s: class %d is listed twice: give one table for each server", s.Addr, r.class.ID)
			}
		}
	}
	factors := slab.FromRounded(ids, func(at int, size uint32) bool { return rows[at].shows(size) })
	if len(factors) == 0 {
		return errors.New("the sizes of the table are not those of a growth factor from 1.01 to 3: its server has slab_sizes, slab_chunk_max or -n; ask the server itself")
	}
	s.Config.Factor = factors[len(factors)/2]
	table := s.Config.Table()
	for _, r := range rows {
		c := r.class
		c.ChunkSize, c.PerPage = table[c.ID-1].Size, table[c.ID-1].PerPage
		c.Free = max(0, c.Pages*int64(c.PerPage)-c.Used)
		s.Classes = append(s.Classes, c)
		s.Memory += c.Pages * slab.Page
	}
	s.Items = Spread(s.Config, s.Classes)
	return nil
}
