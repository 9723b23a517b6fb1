package pace

import (
	"math"
	"time"
)

const (
	// cutRate is the factor by which a throttled rate falls, at most once in cutPause. It never falls below
	// leastRate requests per second.
	cutRate, cutPause = 0.7, time.Second
	leastRate         = 1.0
	// Stores refuse a few requests at any rate. A rate falls if more than strayShare of the requests of the
	// last time, about strayTime, and at least fewestRefusals, were refused.
	strayShare, strayTime, fewestRefusals = 0.03, 500 * time.Millisecond, 2.5
	// A rate that has to fall a second time within again falls to acceptedShare of what was accepted meanwhile.
	acceptedShare, again = 0.9, 5 * time.Second
	// growth is the factor by which a rate rises in a second, if at least used of it was used. Near the rate at
	// which the store throttled last, from nearBelow to nearAbove of it, the factor is nearGrowth: reaching it
	// again costs refusals. Beyond that the store takes more than it did, and the factor is fastGrowth.
	growth, used         = 1.02, 0.8
	nearGrowth           = 1.002
	nearBelow, nearAbove = 0.9, 1.05
	fastGrowth           = 1.1
	// After an outage nothing is known about the rate that the store takes, and the factor is blindGrowth.
	blindGrowth = 1.5
	// burst is the time whose requests may be sent at once.
	burst = 100 * time.Millisecond
	// longestBan bounds how long a store may ask to wait.
	longestBan = 5 * time.Minute
)

// rate is a limit of requests per second.
type rate struct {
	// start is the rate that is allowed from the beginning. Up to it the rate rises by growth a second, beyond
	// it by ramp. Infinite: there is no limit until the store throttles.
	start, ramp float64

	perSecond float64
	wall      float64 // the rate at which the store throttled last; 0: it has not, or took nothing at all
	tokens    float64
	filled    time.Time
	banned    time.Time // until when the store has asked to wait
	cutAt     time.Time
	accepted  float64   // requests since the rate was lowered last
	began     time.Time // of the window in which sent counts
	sent      float64
	last      float64 // requests per second of the window before
	// asked and refused are requests of the last time; older ones count less. They were aged at agedAt.
	asked, refused float64
	agedAt         time.Time
}

// newRate returns a rate that begins with start requests per second; 0: without a limit.
func newRate(now time.Time, start, ramp float64) *rate {
	if start == 0 {
		start = math.Inf(1)
	}
	return &rate{start: start, ramp: ramp, perSecond: start, tokens: 1, filled: now, began: now}
}

// wait returns how long the next request must wait, 0 if it may be sent.
func (r *rate) wait(now time.Time) time.Duration {
	r.turn(now)
	r.age(now)
	if now.Before(r.banned) {
		return r.banned.Sub(now)
	}
	if math.IsInf(r.perSecond, 1) {
		return 0
	}
	room := max(1, r.perSecond*burst.Seconds())
	r.tokens = min(room, r.tokens+r.perSecond*now.Sub(r.filled).Seconds())
	r.filled = now
	if r.tokens >= 1 {
		return 0
	}
	return max(time.Duration((1-r.tokens)/r.perSecond*float64(time.Second)), time.Microsecond)
}

// send counts a request that wait has allowed.
func (r *rate) send() {
	r.tokens--
	r.sent++
	r.asked++
}

// turn raises the rate once a second.
func (r *rate) turn(now time.Time) {
	elapsed := now.Sub(r.began).Seconds()
	if elapsed < 1 {
		return
	}
	r.last = r.sent / elapsed
	if !math.IsInf(r.perSecond, 1) && r.last >= used*r.perSecond && now.Sub(r.cutAt) > 2*cutPause {
		r.rise()
	}
	r.began, r.sent = now, 0
}

// age lets the requests of the last time count less.
func (r *rate) age(now time.Time) {
	older := math.Exp(-now.Sub(r.agedAt).Seconds() / strayTime.Seconds())
	r.asked, r.refused, r.agedAt = older*r.asked, older*r.refused, now
}

func (r *rate) rise() {
	g := growth
	switch {
	case r.perSecond >= r.start:
		r.perSecond *= min(r.ramp, growth)
		return
	case r.wall == 0:
		g = blindGrowth
	case r.perSecond > nearAbove*r.wall:
		g = fastGrowth
	case r.perSecond >= nearBelow*r.wall:
		g = nearGrowth
	}
	r.perSecond = min(g*r.perSecond, r.start)
}

// throttled counts a refusal. It lowers the rate if too many requests were refused, unless it has been
// lowered within a second, and stops for as long as the store asks.
func (r *rate) throttled(now time.Time, after time.Duration) {
	if until := now.Add(min(after, longestBan)); until.After(r.banned) {
		r.banned = until
	}
	r.age(now)
	r.refused++
	if r.refused < fewestRefusals || r.refused <= strayShare*r.asked || now.Sub(r.cutAt) < cutPause {
		return
	}
	sent := max(r.last, r.sent/max(now.Sub(r.began).Seconds(), burst.Seconds()))
	sent = max(leastRate, min(r.perSecond, sent))
	accepted := r.accepted / now.Sub(r.cutAt).Seconds()
	switch {
	case r.accepted == 0:
		r.wall = 0 // an outage says nothing about the rate that the store takes
		r.perSecond = cutRate * sent
	case now.Sub(r.cutAt) < again && acceptedShare*accepted < cutRate*sent:
		r.wall = accepted
		r.perSecond = acceptedShare * accepted
	default:
		r.wall = sent
		r.perSecond = cutRate * sent
	}
	r.perSecond = max(leastRate, r.perSecond)
	r.cutAt, r.filled = now, now
	r.tokens, r.accepted, r.asked, r.refused = 0, 0, 0, 0
}
