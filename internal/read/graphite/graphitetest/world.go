package graphitetest

import (
	"math"
	"math/rand/v2"
	"strings"
)

// Base is a time at a full hour, of which the data lie on both sides.
const Base = 1_700_002_800

// World is data with the paths that find them.
type World struct {
	Data  Data
	Paths []string
	Tags  []string // calls of seriesByTag
}

// NewWorld makes series with gaps, runs of nothing, counters that reset, tags and names beyond ASCII. With
// mixed, their steps differ.
func NewWorld(seed, stream uint64, mixed bool) *World {
	r := rand.New(rand.NewPCG(seed, stream))
	w := &World{Data: Data{Series: map[string]Series{}}}
	steps := []int64{[]int64{60, 60, 60, 300}[r.IntN(4)]}
	if mixed {
		steps = []int64{60, 30, 120}
	}
	names := []string{
		"servers.web1.cpu.idle", "servers.web2.cpu.idle", "servers.web10.cpu.idle", "servers.db1.cpu.idle", "servers.web1.cpu.user",
		"servers.web2.cpu.user", "servers.db1.cpu.user", "a.b.c", "a.b.d", "a.x.c", "größe.мера.x", "größe.мера.y", "counter.x", "counter.y",
		"empty.one", "empty.two", "disk.used;dc=eu;host=web1", "disk.used;dc=eu;host=web2", "disk.used;dc=us;host=web1", "disk.free;dc=eu;host=web1",
		"weights.web1", "weights.web2",
	}
	for i, name := range names {
		step := steps[i%len(steps)]
		w.Data.Series[name] = values(r, name, step, i)
	}
	w.Paths = []string{
		"servers.*.cpu.idle", "servers.web*.cpu.idle", "servers.{web1,db1}.cpu.*", "servers.web1.cpu.idle", "servers.web?.cpu.user",
		"servers.*.cpu.*", "a.b.*", "a.*.c", "a.b.c", "größe.мера.*", "counter.*", "counter.x", "empty.*", "empty.one", "nothing.*",
		"disk.used;dc=eu;host=web1", "servers.web[12].cpu.idle", "weights.*",
	}
	w.Tags = []string{
		`seriesByTag("name=disk.used")`, `seriesByTag("dc=eu","host=~web.*")`, `seriesByTag('host=web1', 'dc!=us')`, `seriesByTag("name=~disk","dc=us")`,
	}
	for range 20 {
		w.Data.Events = append(w.Data.Events, Event{float64(Base + r.IntN(7200)), []any{[]string{"deploy", "alert"}[r.IntN(2)]}})
	}
	return w
}

// hours of data before and after Base.
const (
	hoursBefore = 50
	hoursAfter  = 4
)

func values(r *rand.Rand, name string, step int64, i int) Series {
	s := Series{Start: Base - hoursBefore*3600, Step: step}
	if strings.HasPrefix(name, "empty.") {
		v := 1.0 // a name that was used once, long before the windows
		s.Start += 30 * 3600
		s.Values = []*float64{&v}
		return s
	}
	n := int((hoursBefore + hoursAfter) * 3600 / step)
	current, gaps := float64(r.IntN(100)), r.Float64()*0.3
	for j := range n {
		var v float64
		switch {
		case strings.HasPrefix(name, "counter"):
			if current += float64(r.IntN(50)); r.IntN(40) == 0 {
				current = 0
			}
			v = current
		case i%3 == 0:
			v = math.Round(r.Float64()*1e6) / 1e3
		case i%3 == 1:
			v = float64(r.IntN(7)) - 3
		default:
			current += r.NormFloat64()
			v = current
		}
		gone := r.Float64() < gaps || j%97 > 90
		if gone {
			s.Values = append(s.Values, nil)
		} else {
			s.Values = append(s.Values, &v)
		}
	}
	return s
}
