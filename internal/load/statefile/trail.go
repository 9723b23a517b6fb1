package statefile

import "time"

// Trail is the evidence of a Graphite load, whose protocol acknowledges nothing: readings of the server's
// counter of received points, and the points that each connection wrote.
type Trail struct {
	// Readings begin with one before the first point.
	Readings []Reading
	// Sent is the number of points that each connection wrote, known once the load has ended.
	Sent []uint64
	// Broken is set if a connection broke while points were on their way.
	Broken bool
}

// Reading is one reading of the counter, or a failed one because the server was away.
type Reading struct {
	At       int64 // Unix ns
	Received uint64
	Away     bool
	// Life tells one process of the server from the next: its start time in Unix seconds, 0 if the server does
	// not report it.
	Life float64
}

// settled is how old a reading must be when the server dies for its points to count as kept.
const settled = time.Second

// Kept returns how many of the load's points the server must still have. Each of its lives counts with the
// reading a second before the last one; the last life, if it has not ended, counts with its last reading.
func (t *Trail) Kept() uint64 { return t.Lives().kept }

// Died reports whether the server was seen to restart, or to go away without coming back.
func (t *Trail) Died() bool { return t.Lives().deaths > 0 }

type lives struct {
	kept   uint64
	First  uint64 // points of the first life that must be kept
	deaths int
}

func (t *Trail) Lives() lives {
	var out lives
	var life []Reading
	var base uint64 // counter when the load or the life began
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
			// A server that was only slow to respond comes back with the same start and a counter that went on.
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

// sure returns the counter that a life of the server guarantees: its last value or, if the life ended without
// warning, the last value that was a second old by then.
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
