package load

import "time"

// body makes the requests of one sender. What a request of a round holds is a pure function of the load's shape, so
// nothing is kept from one request to the next but memory.
type body struct {
	fleet *Fleet
	batch int // series per request
	course
	disorder
	v1  *wireV1
	v2  *wireV2
	zip packer

	raw   []byte
	count contents
	point point
	now   scrapeState
}

// scrapeState is what the series of one target have in common in one request.
type scrapeState struct {
	first int    // round
	own   moment // of the request's round
	// late are the moments of the rounds from which late samples may come, and before that of the round before.
	late   []moment
	before moment
	ended  moment // of markers
	ends   bool
}

// newBody makes bodies of the given version and compression for a load.
func newBody(l *RemoteWrite) *body {
	b := &body{
		fleet: &l.Fleet, batch: l.Batch, zip: newPacker(l.Compression),
		course: l.Fleet.course(l.Schedule.Timeline), disorder: l.Disorder.until(l.Schedule.rounds).in(l.Schedule.Timeline, l.Fleet.Seed),
	}
	if l.Protocol == V2 {
		b.v2 = newWireV2(b.fleet)
	} else {
		b.v1 = newWireV1(b.fleet)
	}
	b.now.late = make([]moment, len(b.lags))
	return b
}

// fill makes the request with the given number of a round. It returns the compressed request, which stays valid until
// the next call, its size without compression, and what it holds, which may be nothing.
func (b *body) fill(batch, round int) (compressed []byte, size int, c contents) {
	_, first, n := b.fleet.batch(batch, b.batch)
	return b.fillSeries(first, n, round)
}

// fillSeries is fill for n series from first on, which are all of one tenant.
func (b *body) fillSeries(first int64, n, round int) (compressed []byte, size int, c contents) {
	b.zip.begin()
	b.raw, b.count = b.raw[:0], contents{}
	if b.v2 != nil {
		b.v2.begin(b.fleet.place(first), n)
	}
	if b.disorder.on() {
		b.disordered(first, n, round)
	} else {
		b.ordered(first, n, round)
	}
	if b.StaleMarkers && b.SeriesInterval > 0 {
		b.markers(first, n, round)
	}
	if b.v2 != nil {
		b.zip.add(b.v2.symbols.bytes)
	}
	b.zip.add(b.raw)
	compressed, size = b.zip.end()
	return compressed, size, b.count
}

// seek places the point on a series.
func (b *body) seek(g int64) {
	b.point = point{place: b.fleet.place(g), g: g}
	b.point.identity = b.fleet.identity(b.point.place)
}

// step places it on the next one, and reports whether that is of another target.
func (b *body) step() (moved bool) {
	p := &b.point
	p.g++
	p.identity++
	if moved = p.place.next(b.fleet); moved {
		p.identity = b.fleet.identity(p.place)
	}
	return moved
}

// emit appends the message of the point at a moment.
func (b *body) emit(m *moment) {
	b.point.moment = m
	if b.v2 != nil {
		b.raw = b.v2.append(b.raw, &b.point, &b.count)
		return
	}
	b.raw = b.v1.append(b.raw, &b.point, &b.count)
	// The whole body of a usual request is larger than a cache of the processor; so it is compressed in parts, if the
	// format has parts. At a steady pace, when caches are cold each time, that halved the cost.
	if b.zip.parts() && len(b.raw) > windowBytes-spareBytes {
		b.zip.add(b.raw)
		b.raw = b.raw[:0]
	}
}

// spareBytes is more than the message of a series usually takes: a part ends before it would run over a window.
const spareBytes = 1 << 10

// ordered emits the samples of a round, one for each series whose target has begun.
func (b *body) ordered(first int64, n, round int) {
	b.seek(first)
	for moved := true; n > 0; n, moved = n-1, b.step() {
		if moved {
			b.now.first = b.course.first(b.point.target)
			b.now.own = b.course.moment(b.point.target, b.fleet.scrape(b.point.place), round)
		}
		if round >= b.now.first {
			b.emit(&b.now.own)
		}
	}
}

// disordered emits the samples of a round that are not late, and those of earlier rounds whose time has come.
func (b *body) disordered(first int64, n, round int) {
	b.seek(first)
	now := &b.now
	for moved := true; n > 0; n, moved = n-1, b.step() {
		p := &b.point
		if moved {
			scrape := b.fleet.scrape(p.place)
			now.first = b.course.first(p.target)
			now.own = b.course.moment(p.target, scrape, round)
			for i, lag := range b.lags {
				now.late[i] = b.course.moment(p.target, scrape, max(0, round-lag))
			}
			now.before = b.course.moment(p.target, scrape, max(0, round-1))
		}
		if round >= now.first && b.lag(p.g, round) == 0 {
			b.emit(&now.own)
			if after, ok := b.again(p.g, round); ok && after == 0 {
				b.emit(&now.own)
				b.count.twice++
			}
		}
		for i, lag := range b.lags {
			if round-lag >= now.first && b.lag(p.g, round-lag) == lag {
				b.emit(&now.late[i])
				b.count.late++
			}
		}
		if round-1 >= now.first {
			if after, ok := b.again(p.g, round-1); ok && after == 1 {
				b.emit(&now.before)
				b.count.twice++
			}
		}
	}
}

// markers emits what ends the series of the targets that begin a cycle in this round. They come behind the samples of
// the new series and bear the same time, as a Prometheus sends them at the end of a scrape.
func (b *body) markers(first int64, n, round int) {
	b.seek(first)
	b.point.stale = true
	for moved := true; n > 0; n, moved = n-1, b.step() {
		if moved {
			var cycle int
			if cycle, b.now.ends = b.course.ended(b.point.target, round); b.now.ends {
				scrape := b.fleet.scrape(b.point.place)
				b.now.ended = moment{ns: b.course.At(round) + b.course.jitter(scrape, round), cycle: cycle}
			}
		}
		if b.now.ends {
			b.emit(&b.now.ended)
			b.count.stale++
		}
	}
}

// ms returns the time of a round in Unix milliseconds.
func (t Timeline) ms(round int) int64 { return t.At(round) / int64(time.Millisecond) }
