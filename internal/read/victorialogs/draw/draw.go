package draw

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
)

const (
	// Version changes with the requests.
	Version = 2
	// Hashes is the number of hashes, a prime. VictoriaLogs computes with floating-point numbers, which are
	// exact up to 2^53: more than 55 times as many.
	Hashes = 1<<40 - 87
	// MostHalvings leaves a thousand hashes in the smallest part.
	MostHalvings = 30
	// maxWindows is how many windows a range has at most, besides the one that crosses its beginning.
	maxWindows = 64
)

// widths are the widths of windows. Each window is in one of the next width, and is a bucket of VictoriaLogs.
var widths = [...]time.Duration{
	10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// Width returns the width of the windows of a range. ok is false if it is too long.
func Width(r model.TimeRange) (width int64, ok bool) {
	if r.Min < 0 || r.Max > math.MaxInt64/2 {
		return 0, false
	}
	for _, w := range widths {
		if width = int64(w); (r.Max-r.Min)/width < maxWindows {
			return width, true
		}
	}
	return 0, false
}

// Halvings returns how often the lines of a window are halved, so that about the target is left.
func Halvings(lines, target int64) (n int) {
	for n < MostHalvings && float64(lines)/float64(int64(1)<<n) > math.Sqrt2*float64(target) {
		n++
	}
	return n
}

// hashed gives each line its hash. The names are not those of fields of lines.
var hashed = func() string {
	p := strconv.Itoa(Hashes)
	return ` | hash(_msg) "shale 1" | hash(_time) "shale 2" | hash(_stream_id) "shale 3"` +
		` | math (("shale 1" % ` + p + `) * 31 + ("shale 2" % ` + p + `) * 17 + ("shale 3" % ` + p + `) * 7) % ` + p + ` as "shale 1"`
}()

// Part is some windows of which the same part of the lines is wanted.
type Part struct {
	Times    string // a filter
	Halvings int
}

// Some returns the pipes after a filter of the lines of some windows that send a part of them. Without
// streams, lines have only their times, their texts, and what may be their level.
func Some(parts []Part, streams bool) (pipes string) {
	var clauses []string
	halved := false
	for _, p := range parts {
		if p.Halvings == 0 {
			clauses = append(clauses, p.Times)
			continue
		}
		halved = true
		clauses = append(clauses, `("shale 1":<`+strconv.Itoa(Hashes>>p.Halvings)+" "+p.Times+")")
	}
	if halved {
		pipes = hashed + " | filter " + strings.Join(clauses, " or ")
	}
	switch {
	case !streams:
		return pipes + " | fields _time, _msg, " + strings.Join(levelFields, ", ")
	case halved:
		return pipes + ` | delete _stream_id, "shale 1", "shale 2", "shale 3"`
	}
	return pipes + " | delete _stream_id"
}

// Lowest returns the pipes after a filter of the lines of some windows that send the line with the lowest
// hash of each.
func Lowest(width int64, streams bool) (pipes string) {
	pipes, fields := hashed, ""
	if streams {
		pipes += ` | delete _stream_id, "shale 2", "shale 3"`
	} else {
		fields = ", _time, _msg, " + strings.Join(levelFields, ", ")
	}
	return pipes + " | stats by (_time:" + strconv.FormatInt(width, 10) + `ns) row_min("shale 1"` + fields + `) "shale 1"` +
		` | unpack_json from "shale 1" | delete "shale 1"`
}

// Probe is a request with all pipes of samples that has no lines to look at. A server that refuses it does
// not know one of them.
var Probe = "_time:[1970-01-01T00:00:00Z,1970-01-01T00:00:00Z]" + hashed + ` | filter "shale 1":<1` + strings.TrimPrefix(Lowest(int64(time.Minute), true), hashed)
