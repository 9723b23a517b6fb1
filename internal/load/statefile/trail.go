package statefile

import "time"

// Trail is the evidence of a Graphite load, whose protocol acknowledges nothing: readings of the server's
// counter of received points, and what each connection wrote.
type Trail struct {
	// Readings begin with one from before the first point.
	Readings []Reading
	// Sent is the number of points that each connection wrote, known once the load has ended.
	Sent []uint64
	// Broken is set if a connection broke while points were on their way.
	Broken bool
}

// Reading is one look at the counter, or a look that failed because the server was away.
type Reading struct {
	At       int64 // Unix ns
	Received uint64
	Away     bool
	// Life tells one run of the server from the next: when its process started, in Unix seconds. 0 if it does
	// not say.
	Life float64
}

// settled is how old a reading must be when the server dies for its points to count as kept.
const settled = time.Second

// Kept returns how many of the load's points the server must still have: of each of its lives, what its
// counter said a second before its last sign, and of the last one, if it did not end, all that it said.
func (t *Trail) Kept() uint64 { return t.Lives().kept }

// Died reports whether the server was seen to begin anew, or to be away and not to come back.
func (t *Trail) Died() bool { return t.Lives().deaths > 0 }

type lives struct {
	kept   uint64
	First  uint64 // what must be kept of the first life
	deaths int
}

func (t *Trail) Lives() lives {
	var out lives
	var life []Reading
	var base uint64 // of the counter when the load or the life began
	ended := 0
	end := func(died bool) {
		if died {
			out.deaths++
		}
		if len(life) == 0 {
			return
		}
		n := sure(life, base, died) - base
		out.kept += n
		if ended++; ended == 1 {
			out.First = n
		}
		life, base = life[:0], 0
	}
	away := false
	for i, r := range t.Readings {
		if r.Away {
			away = true
			continue
		}
		if i == 0 {
			base = r.Received
		}
		if len(life) > 0 {
			last := life[len(life)-1]
			// A server that was only slow to answer comes back with the same start and a counter that went on.
			same := r.Life != 0 && r.Life == last.Life
			if r.Received < last.Received || !same && (away || r.Life != last.Life) {
				end(true)
			}
		}
		life, away = append(life, r), false
	}
	end(away)
	return out
}

// sure returns the value of the counter that a life of the server stands by: the last one, or, if the life
// ended without warning, the last one that was a second old by then.
func sure(life []Reading, base uint64, died bool) uint64 {
	last := life[len(life)-1]
	if !died {
		return max(base, last.Received)
	}
	out := base
	for _, r := range life {
		if last.At-r.At >= int64(settled) {
			out = max(out, r.Received)
		}
	}
	return out
}
