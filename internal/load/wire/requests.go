package wire

import (
	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
)

// Requests makes the requests of one sender. The contents of a request are a pure function of the load's
// shape, so only memory is kept from one request to the next.
type Requests struct {
	fleet *fleet.Fleet
	batch int // series per request
	fleet.Course
	fleet.Reordering
	v1  *wireV1
	v2  *wireV2
	zip packer

	raw   []byte
	count Contents
	point fleet.Point
	now   scrapeState
}

// scrapeState is the state that the series of one target share in one request.
type scrapeState struct {
	first int          // round
	own   fleet.Moment // of the request's round
	// late are the moments of the rounds of late samples, and before is that of the previous round.
	late   []fleet.Moment
	before fleet.Moment
	ended  fleet.Moment // of markers
	ends   bool
}

// Encoding says how the samples of a fleet are put into requests.
type Encoding struct {
	Fleet       *fleet.Fleet
	Disorder    fleet.Disorder
	Timeline    pace.Timeline
	Protocol    Protocol
	Compression Compression
	Batch       int // series per request
}

// NewRequests returns an encoder of requests.
func NewRequests(e Encoding) *Requests {
	b := &Requests{
		fleet: e.Fleet, batch: e.Batch, zip: NewPacker(e.Compression),
		Course: e.Fleet.Course(e.Timeline), Reordering: e.Disorder.InRounds(e.Timeline, e.Fleet.Seed),
	}
	if e.Protocol == V2 {
		b.v2 = newWireV2(b.fleet)
	} else {
		b.v1 = newWireV1(b.fleet)
	}
	b.now.late = make([]fleet.Moment, len(b.Lags))
	return b
}

// Fill makes the request with the given number of a round. It returns the compressed request, which is valid
// until the next call, its size without compression, and its contents, which may be empty.
func (b *Requests) Fill(batch, round int) (compressed []byte, size int, c Contents) {
	_, first, n := b.fleet.Batch(batch, b.batch)
	return b.FillSeries(first, n, round)
}

// FillSeries is Fill for the series [first, first+n), which all belong to one tenant.
func (b *Requests) FillSeries(first int64, n, round int) (compressed []byte, size int, c Contents) {
	b.zip.Begin()
	b.raw, b.count = b.raw[:0], Contents{}
	if b.v2 != nil {
		b.v2.begin(b.fleet.Place(first), n)
	}
	if b.Reordering.On() {
		b.disordered(first, n, round)
	} else {
		b.ordered(first, n, round)
	}
	if b.StaleMarkers && b.SeriesInterval > 0 {
		b.markers(first, n, round)
	}
	if b.v2 != nil {
		b.zip.Add(b.v2.symbols.bytes)
	}
	b.zip.Add(b.raw)
	compressed, size = b.zip.End()
	return compressed, size, b.count
}

// seek moves the point to a series.
func (b *Requests) seek(g int64) {
	b.point = fleet.Point{Place: b.fleet.Place(g), G: g}
	b.point.Identity = b.fleet.Identity(b.point.Place)
}

// step moves the point to the next series, and reports whether that belongs to another target.
func (b *Requests) step() (moved bool) {
	p := &b.point
	p.G++
	p.Identity++
	if moved = p.Place.Next(b.fleet); moved {
		p.Identity = b.fleet.Identity(p.Place)
	}
	return moved
}

// emit appends the message of the point at a moment.
func (b *Requests) emit(m *fleet.Moment) {
	b.point.Moment = m
	if b.v2 != nil {
		b.raw = b.v2.append(b.raw, &b.point, &b.count)
		return
	}
	b.raw = b.v1.append(b.raw, &b.point, &b.count)
	// The whole body of a usual request does not fit the CPU cache, so it is compressed in parts if the format
	// has parts. At a steady pace the caches are cold each time.
	if b.zip.parts() && len(b.raw) > WindowBytes-SpareBytes {
		b.zip.Add(b.raw)
		b.raw = b.raw[:0]
	}
}

// SpareBytes is more than the usual message of a series: a part ends before it would exceed a window.
const SpareBytes = 1 << 10

// ordered emits the samples of a round, one for each series whose target has begun.
func (b *Requests) ordered(first int64, n, round int) {
	b.seek(first)
	for moved := true; n > 0; n, moved = n-1, b.step() {
		if moved {
			b.now.first = b.Course.First(b.point.Target)
			b.now.own = b.Course.Moment(b.point.Target, b.fleet.Scrape(b.point.Place), round)
		}
		if round >= b.now.first {
			b.emit(&b.now.own)
		}
	}
}

// disordered emits the samples of a round that are not late, and those of earlier rounds that are due now.
func (b *Requests) disordered(first int64, n, round int) {
	b.seek(first)
	now := &b.now
	for moved := true; n > 0; n, moved = n-1, b.step() {
		p := &b.point
		if moved {
			scrape := b.fleet.Scrape(p.Place)
			now.first = b.Course.First(p.Target)
			now.own = b.Course.Moment(p.Target, scrape, round)
			for i, lag := range b.Lags {
				now.late[i] = b.Course.Moment(p.Target, scrape, max(0, round-lag))
			}
			now.before = b.Course.Moment(p.Target, scrape, max(0, round-1))
		}
		if round >= now.first && b.Lag(p.G, round) == 0 {
			b.emit(&now.own)
			if after, ok := b.Again(p.G, round); ok && after == 0 {
				b.emit(&now.own)
				b.count.Twice++
			}
		}
		for i, lag := range b.Lags {
			if round-lag >= now.first && b.Lag(p.G, round-lag) == lag {
				b.emit(&now.late[i])
				b.count.Late++
			}
		}
		if round-1 >= now.first {
			if after, ok := b.Again(p.G, round-1); ok && after == 1 {
				b.emit(&now.before)
				b.count.Twice++
			}
		}
	}
}

// markers emits the stale markers for targets that begin a cycle in this round. They follow the samples of
// the new series and have the same time, as a Prometheus sends them at the end of a scrape.
func (b *Requests) markers(first int64, n, round int) {
	b.seek(first)
	b.point.Stale = true
	for moved := true; n > 0; n, moved = n-1, b.step() {
		if moved {
			var cycle int
			if cycle, b.now.ends = b.Course.Ended(b.point.Target, round); b.now.ends {
				scrape := b.fleet.Scrape(b.point.Place)
				b.now.ended = fleet.Moment{Ns: b.Course.At(round) + b.Course.ScrapeDelay(scrape, round), Cycle: cycle}
			}
		}
		if b.now.ends {
			b.emit(&b.now.ended)
			b.count.Stale++
		}
	}
}

// UseSnappy changes the compression of all requests that follow.
func (b *Requests) UseSnappy() { b.zip = NewPacker(Snappy) }
