package fleet

import (
	"fmt"
	"slices"

	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/random"
	"github.com/shaledb/shale/internal/model"
)

// Disorder makes a share of samples late and sends a share twice.
type Disorder struct {
	Late pace.Lateness `json:"late,omitzero"`
	// Twice is the share of samples that are sent again, half of them in the same request and half in the next
	// round.
	Twice float64 `json:"twice,omitempty"`
	// Rounds of the load, taken from its schedule; 0: unknown. No sample is delayed beyond the last one.
	Rounds int `json:"rounds,omitempty"`
}

// Until returns the disorder of a load of the given number of rounds.
func (d Disorder) Until(rounds int) Disorder {
	d.Rounds = rounds
	return d
}

func (d Disorder) Check() error {
	if !(d.Late.Share >= 0 && d.Late.Share <= 1 && d.Twice >= 0 && d.Twice <= 1) || d.Late.By < 0 || d.Rounds < 0 {
		return fmt.Errorf("%w: load: shares of late and of repeated samples go from 0 to 1, times from 0", model.ErrInvalid)
	}
	return nil
}

// Reordering is a Disorder in rounds. Whether a sample is late is a pure function of its series and round.
type Reordering struct {
	late, twice float64
	rounds      int
	Lags        []int // by how many rounds a sample may be late
	seed        uint64
}

func (d Disorder) InRounds(t pace.Timeline, seed uint64) Reordering {
	out := Reordering{twice: d.Twice, rounds: d.Rounds, seed: seed}
	if d.Late.Share > 0 {
		out.late = d.Late.Share
		for part := int64(8); part > 0; part /= 2 {
			if lag := max(1, int(int64(d.Late.By)/part/t.Step)); !slices.Contains(out.Lags, lag) {
				out.Lags = append(out.Lags, lag)
			}
		}
	}
	return out
}

// On reports whether any sample is late or sent twice.
func (d *Reordering) On() bool { return d.late > 0 || d.twice > 0 }

// within reports whether a load has a round.
func (d *Reordering) within(round int) bool { return d.rounds == 0 || round < d.rounds }

// Lag returns the delay of a sample in rounds.
func (d *Reordering) Lag(g int64, round int) int {
	if d.late == 0 {
		return 0
	}
	drawn := random.Draw(d.seed^random.SaltLate, uint64(g), uint64(round))
	if !random.Happens(d.late, drawn) {
		return 0
	}
	// The low bits do not influence whether the sample is late.
	if lag := d.Lags[drawn%1024*uint64(len(d.Lags))/1024]; d.within(round + lag) {
		return lag
	}
	return 0
}

// Again returns how many rounds after its own a sample that is not late is sent once more.
func (d *Reordering) Again(g int64, round int) (after int, ok bool) {
	if d.twice == 0 {
		return 0, false
	}
	drawn := random.Draw(d.seed^random.SaltTwice, uint64(g), uint64(round))
	if !random.Happens(d.twice, drawn) || d.Lag(g, round) > 0 {
		return 0, false
	}
	if drawn&1 == 1 && d.within(round+1) {
		return 1, true
	}
	return 0, true
}

// Sendings returns the rounds in whose requests a sample is sent.
func (d *Reordering) Sendings(g int64, round int) (first, second int) {
	if lag := d.Lag(g, round); lag > 0 {
		return round + lag, round + lag
	}
	after, _ := d.Again(g, round)
	return round, round + after
}
