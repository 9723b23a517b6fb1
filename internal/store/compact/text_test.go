package compact

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// TestPeakOfLines merges late blocks in which one stream has far more lines than the merge may hold, on many
// days, next to small streams. The memory of a merge does not grow with the lines of a stream.
func TestPeakOfLines(t *testing.T) {
	if testing.Short() || underRace {
		t.Skip("it writes a hundred megabytes, and the race detector has memory of its own")
	}
	const days, perDay, budget, bound = 12, 4 << 20, 16 << 20, 64 << 20
	d := newOnDisk(t)
	var streams []model.Labels
	for i := range 51 {
		streams = append(streams, model.LabelsOf("service_name", "shop", "pod", fmt.Sprint(i)))
	}
	all := inOrder(model.Logs, streams)
	lines := 0
	for n := range 2 {
		lines += d.shipLines(t, n, all, days, perDay)
	}
	comp, made := d.mergeDays(t, days, budget, bound)
	total := uint64(0)
	for i := range made {
		if _, ok := inOneDay(made[i].Range); !ok {
			t.Errorf("a block of the times %v", made[i].Range)
		}
		r, err := (&merge{c: comp, ctx: ctx}).reader(ctx, &made[i], greatestWindow)
		if err == nil {
			err = part.Check(ctx, r)
		}
		if err != nil {
			t.Fatal(err)
		}
		if m := r.Meta(); made[i].Lines != m.Text || made[i].LineBytes != m.TextBytes {
			t.Errorf("the record counts %d lines of %d bytes, and the block has %d of %d", made[i].Lines, made[i].LineBytes, m.Text, m.TextBytes)
		}
		total += r.Meta().Text
	}
	if total != uint64(lines) || len(made) != days {
		t.Errorf("%d lines in %d blocks, of %d", total, len(made), lines)
	}
}

// shipLines ships a block of a large stream and small ones, with lines on each day whose times lie between
// those of the other blocks. It returns how many lines that are.
func (d *onDisk) shipLines(t *testing.T, n int, streams []keyed, days, perDay int) (lines int) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(n+1), 1))
	d.ship(t, n, model.Logs, streams, func(pw *part.Writer, i int) error {
		size := perDay
		if i != 17 {
			size = 2000
		}
		for at := range days {
			rows := linesOfADay(r, at, n, size)
			lines += rows.Len()
			clip := model.TimeRange{Min: rows.Times[0], Max: rows.Times[rows.Len()-1]}
			if err := pw.Text(ctx, []part.Text{part.TextOfRows(rows)}, clip); err != nil {
				return err
			}
		}
		return nil
	})
	return lines
}

// linesOfADay makes lines of about so many bytes, spread over a day; those of block n lie n milliseconds
// later.
func linesOfADay(r *rand.Rand, d, n, size int) *model.TextRows {
	rows := &model.TextRows{}
	const about = 60
	step := int64(day) / int64(size/about+2)
	for at := dayZero + int64(d)*int64(day) + int64(n)*int64(time.Millisecond); len(rows.Bytes) < size; at += step {
		rows.Times = append(rows.Times, at)
		rows.Bytes = fmt.Appendf(rows.Bytes, "level=info msg=%q duration=%dms path=/api/%d user=%x", "request completed", r.IntN(1000), r.IntN(50), r.Uint64())
		rows.Ends = append(rows.Ends, uint32(len(rows.Bytes)))
	}
	return rows
}
