package victorialogs

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// Statistics have a row for each stream, or group of streams, and bucket. Most of it is the text of the
// stream. So rows are packed: one of a stream has the time and the numbers of each of its buckets.

const (
	packedField = "cells"
	// packedBuckets is from how many buckets on rows are packed.
	packedBuckets = 4
)

// packedProbe is a request for packed rows that has no lines to look at.
var packedProbe = "_time:[1970-01-01T00:00:00Z,1970-01-01T00:00:00Z] | stats by (_stream, _time:1m) count() n" + packing([]string{"_stream"}, []string{"_time", "n"})

// packs reports whether the rows of a range are packed.
func (d *directory) packs(r model.TimeRange, b buckets) bool {
	if !b.counted || b.step <= 0 || (uint64(r.Max)-uint64(r.Min))/uint64(b.step) < packedBuckets {
		return false
	}
	d.plain = d.plain || d.refused(formPacked) // from then on, whenever that ends
	return !d.plain
}

// packing returns the pipes that pack some fields of rows, by others.
func packing(by, fields []string) string {
	text := ` | format "<` + strings.Join(fields, "> <") + `>" as ` + packedField + " | stats"
	if len(by) > 0 {
		text += " by (" + strings.Join(by, ", ") + ")"
	}
	return text + " values(" + packedField + ") " + packedField
}

// unpacked returns what calls each with the rows of packed ones. Other rows are handed on as they are.
func unpacked(fields []string, each func(row []field) error) func(row []field) error {
	var own []field
	names := make([][]byte, len(fields))
	for i := range fields {
		names[i] = []byte(fields[i])
	}
	return func(row []field) error {
		at := slices.IndexFunc(row, func(f field) bool { return string(f.name) == packedField })
		if at < 0 {
			return each(row)
		}
		malformed := func() error {
			return fmt.Errorf("%w: VictoriaLogs has sent a row of statistics that is not one: %s", model.ErrCorrupt, rowText(row))
		}
		if string(row[at].value) == "[]" { // there are no lines, and the list is not by a field
			return nil
		}
		list, begins := bytes.CutPrefix(row[at].value, []byte(`["`))
		list, ends := bytes.CutSuffix(list, []byte(`"]`))
		if !begins || !ends {
			return malformed()
		}
		for more := true; more; {
			var words, word []byte
			var goesOn bool
			words, list, more = bytes.Cut(list, []byte(`","`))
			own = append(append(own[:0], row[:at]...), row[at+1:]...)
			for i, name := range names {
				if word, words, goesOn = bytes.Cut(words, []byte(" ")); goesOn != (i+1 < len(names)) {
					return malformed()
				}
				own = append(own, field{name, word})
			}
			if err := each(own); err != nil {
				return err
			}
		}
		return nil
	}
}
