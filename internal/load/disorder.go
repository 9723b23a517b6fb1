package load

import (
	"fmt"
	"slices"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Disorder is what a load does to samples on their way: a share is late, a share comes twice.
type Disorder struct {
	Late Lateness `json:"late,omitzero"`
	// Twice is the share of samples that are sent again, half of them in the same request and half in the next round.
	Twice float64 `json:"twice,omitempty"`
	// Rounds of the load, 0 if nobody knows; its schedule says it. Nothing is put off beyond the last one.
	Rounds int `json:"rounds,omitempty"`
}

// Lateness is a share of samples that are sent behind newer ones, by an eighth, a quarter, a half or all of By.
type Lateness struct {
	Share float64       `json:"share"`
	By    time.Duration `json:"by"`
}

// until returns the disorder of a load of so many rounds.
func (d Disorder) until(rounds int) Disorder {
	d.Rounds = rounds
	return d
}

func (d Disorder) check() error {
	if !(d.Late.Share >= 0 && d.Late.Share <= 1 && d.Twice >= 0 && d.Twice <= 1) || d.Late.By < 0 || d.Rounds < 0 {
		return fmt.Errorf("%w: load: shares of late and of repeated samples go from 0 to 1, times from 0", model.ErrInvalid)
	}
	return nil
}

// disorder is a Disorder in rounds. Whether a sample is late is a pure function of its series and round.
type disorder struct {
	late, twice float64
	rounds      int
	lags        []int // by how many rounds a sample may be late
	seed        uint64
}

func (d Disorder) in(t Timeline, seed uint64) disorder {
	out := disorder{twice: d.Twice, rounds: d.Rounds, seed: seed}
	if d.Late.Share > 0 {
		out.late = d.Late.Share
		for part := int64(8); part > 0; part /= 2 {
			if lag := max(1, int(int64(d.Late.By)/part/t.Step)); !slices.Contains(out.lags, lag) {
				out.lags = append(out.lags, lag)
			}
		}
	}
	return out
}

// on reports whether samples stay where they belong.
func (d *disorder) on() bool { return d.late > 0 || d.twice > 0 }

// within reports whether a load gets to a round.
func (d *disorder) within(round int) bool { return d.rounds == 0 || round < d.rounds }

// lag returns by how many rounds a sample is late.
func (d *disorder) lag(g int64, round int) int {
	if d.late == 0 {
		return 0
	}
	drawn := draw(d.seed^saltLate, uint64(g), uint64(round))
	if !happens(d.late, drawn) {
		return 0
	}
	// The low bits have no part in whether it is late.
	if lag := d.lags[drawn%1024*uint64(len(d.lags))/1024]; d.within(round + lag) {
		return lag
	}
	return 0
}

// again returns how many rounds after its own a sample that is not late is sent once more.
func (d *disorder) again(g int64, round int) (after int, ok bool) {
	if d.twice == 0 {
		return 0, false
	}
	drawn := draw(d.seed^saltTwice, uint64(g), uint64(round))
	if !happens(d.twice, drawn) || d.lag(g, round) > 0 {
		return 0, false
	}
	if drawn&1 == 1 && d.within(round+1) {
		return 1, true
	}
	return 0, true
}

// sendings returns the rounds in whose requests a sample is sent.
func (d *disorder) sendings(g int64, round int) (first, second int) {
	if lag := d.lag(g, round); lag > 0 {
		return round + lag, round + lag
	}
	after, _ := d.again(g, round)
	return round, round + after
}
