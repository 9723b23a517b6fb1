package study

import "math"

// Target asks for the smallest size that reaches a figure. The zero value asks for nothing.
type Target struct {
	// HitRatio is the least share of first reads that are hits, between 0 and 1; 0: not asked.
	HitRatio float64
	// PeakGets is the most requests a second to the bucket in the worst minute; 0: not asked.
	PeakGets float64
}

// Met is the size that meets a target.
type Met struct {
	Policy string `json:"policy"`
	// Reached is false if not even the largest size meets the target.
	Reached bool `json:"reached"`
	// Row has the figures at the size, on straight lines between the sizes that were simulated, over the
	// logarithm of the size.
	Row Row `json:"row"`
}

func (t Target) isMet(r Row) bool {
	return (t.HitRatio == 0 || r.FirstHitRatio >= t.HitRatio) && (t.PeakGets == 0 || r.PeakGets <= t.PeakGets)
}

// meet finds the size on a curve of one policy.
func (t Target) meet(curve []Row) Met {
	m := Met{Policy: curve[0].Policy}
	for i, row := range curve {
		if !t.isMet(row) {
			continue
		}
		m.Reached, m.Row = true, row
		if i > 0 {
			low, high := 0.0, 1.0
			for range 40 {
				if mid := (low + high) / 2; t.isMet(between(curve[i-1], row, mid)) {
					high = mid
				} else {
					low = mid
				}
			}
			m.Row = between(curve[i-1], row, high)
		}
		return m
	}
	m.Row = curve[len(curve)-1]
	return m
}

// between returns the row at a share of the way from one to another.
func between(a, b Row, share float64) Row {
	mix := func(x, y float64) float64 { return x + (y-x)*share }
	r := a
	r.Bytes = math.Exp(mix(math.Log(a.Bytes), math.Log(b.Bytes)))
	for _, f := range []struct {
		dst  *float64
		x, y float64
	}{
		{&r.HitRatio, a.HitRatio, b.HitRatio}, {&r.FirstHitRatio, a.FirstHitRatio, b.FirstHitRatio}, {&r.ByteHitRatio, a.ByteHitRatio, b.ByteHitRatio},
		{&r.Gets, a.Gets, b.Gets}, {&r.PeakGets, a.PeakGets, b.PeakGets}, {&r.Unread, a.Unread, b.Unread}, {&r.PeakUnread, a.PeakUnread, b.PeakUnread}, {&r.Refused, a.Refused, b.Refused},
		{&r.Turnovers, a.Turnovers, b.Turnovers}, {&r.PeakTurnovers, a.PeakTurnovers, b.PeakTurnovers},
		{&r.Written, a.Written, b.Written}, {&r.DriveWrites, a.DriveWrites, b.DriveWrites},
		{&r.Gbps, a.Gbps, b.Gbps}, {&r.IOPS, a.IOPS, b.IOPS}, {&r.GetDollars, a.GetDollars, b.GetDollars},
	} {
		*f.dst = mix(f.x, f.y)
	}
	return r
}
