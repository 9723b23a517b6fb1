package renders

import (
	"math"
	"strconv"
	"time"
)

// step is the distance of points, in seconds.
const step = 60

const (
	panels    = 100    // of the dashboard
	hosts     = 10     // series of a panel
	wideNodes = 10_000 // series of the sum
)

// set is series with points at equal times.
type set struct {
	series int
	span   time.Duration // of the points, up to the end
	name   func(i int) string
}

// sets returns what servers hold. Spans are longer than those of requests, for functions that look back and
// for requests that slide.
func sets() []set {
	return []set{
		{panels * hosts, 32 * 24 * time.Hour, func(i int) string { return "servers.host" + two(i/panels) + ".app.m" + two(i%panels) }},
		{wideNodes, 26 * time.Hour, func(i int) string { return "wide.group" + two(i/100) + ".node" + two(i%100) + ".load" }},
		{1, 368 * 24 * time.Hour, func(int) string { return "year.requests" }},
	}
}

func two(i int) string {
	if i < 10 {
		return "0" + strconv.Itoa(i)
	}
	return strconv.Itoa(i)
}

// value returns a point: a wave of a day with noise, of two decimals, as programs report them.
func value(series int, at int64) float64 {
	x := uint64(series)*0x9e3779b97f4a7c15 + uint64(at)*0xbf58476d1ce4e5b9
	x ^= x >> 31
	x *= 0x94d049bb133111eb
	noise := float64(x>>40) / (1 << 24)
	wave := math.Sin(2 * math.Pi * float64(at%86400+int64(series)*977) / 86400)
	return math.Round(100*(60+40*wave+10*noise)) / 100
}
