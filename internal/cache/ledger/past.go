package ledger

import "time"

// minutes is how many minutes the sums go back.
const minutes = 60

// sums are the counts of one tier at a moment.
type sums struct {
	hits, missed                               counted
	ages                                       [places]counted
	admitted, refused, evicted, unread         int64
	evictedBytes, resident, residence, written int64
	reads, readSeconds, readBytes              int64
}

// counted is a count as a plain value.
type counted struct{ touches, first, bytes int64 }

func (c *counted) add(o counted)      { c.touches += o.touches; c.first += o.first; c.bytes += o.bytes }
func (c *counted) subtract(o counted) { c.touches -= o.touches; c.first -= o.first; c.bytes -= o.bytes }

func (c *count) load() counted {
	return counted{c.touches.Load(), c.first.Load(), c.bytes.Load()}
}

// sums returns the sums of each tier, of one tenant or, if it is nil, of all. Of a tenant only touches are
// known. The caller holds the lock of the ledger.
func (l *Ledger) sums(of *tenant) []sums {
	all := make([]sums, len(l.tiers))
	list := []*tenant{of}
	if of == nil {
		list = l.tenants.list()
	}
	for i, t := range l.tiers {
		s := &all[i]
		for _, who := range list {
			for j := range who.hits[i] {
				c := who.hits[i][j].load()
				s.hits.add(c)
				s.ages[j].add(c)
			}
			s.missed.add(who.missed[i].load())
		}
		if of != nil {
			continue
		}
		u := &t.upkeep
		s.admitted, s.refused, s.evicted, s.unread = u.admitted.Load(), u.refused.Load(), u.evicted.Load(), u.unread.Load()
		s.evictedBytes, s.resident, s.residence, s.written = u.evictedBytes.Load(), u.resident.Load(), u.residence.Load(), u.written.Load()
		s.reads, s.readSeconds, s.readBytes = u.reads.Load(), u.readSeconds.Load(), u.readsBytes.Load()
	}
	for i, t := range l.tiers {
		if t.aside || t.source {
			continue
		}
		for j := i + 1; j < len(l.tiers); j++ {
			// A part of the data folder is never in a tier after memory.
			if !l.tiers[j].aside && (i == 0 || l.tiers[j].name != Local) {
				all[i].missed.add(all[j].hits)
			}
		}
	}
	return all
}

// subtract takes off what was counted before.
func (s *sums) subtract(o *sums) {
	s.hits.subtract(o.hits)
	s.missed.subtract(o.missed)
	for i := range s.ages {
		s.ages[i].subtract(o.ages[i])
	}
	s.admitted -= o.admitted
	s.refused -= o.refused
	s.evicted -= o.evicted
	s.unread -= o.unread
	s.evictedBytes -= o.evictedBytes
	s.resident -= o.resident
	s.residence -= o.residence
	s.written -= o.written
	s.reads -= o.reads
	s.readSeconds -= o.readSeconds
	s.readBytes -= o.readBytes
}

// past are the sums of the last hour, one set a minute.
type past struct {
	at   [minutes + 1]int64
	sums [minutes + 1][]sums
	next int
	n    int
}

func (p *past) note(now int64, s []sums) {
	p.at[p.next], p.sums[p.next] = now, s
	p.next = (p.next + 1) % len(p.sums)
	p.n = min(p.n+1, len(p.sums))
}

// oldest returns the sums of an hour ago, or the oldest ones. Without any it returns nil.
func (p *past) oldest() (at int64, s []sums) {
	if p.n == 0 {
		return 0, nil
	}
	i := (p.next - p.n + len(p.sums)) % len(p.sums)
	return p.at[i], p.sums[i]
}

// lastHour returns the sums since about an hour ago, and how long ago that is.
func (l *Ledger) lastHour() ([]sums, time.Duration) {
	now := l.sums(nil)
	at, before := l.past.oldest()
	if before == nil {
		return now, time.Duration(l.now() - l.began)
	}
	for i := range before {
		now[i].subtract(&before[i])
	}
	return now, time.Duration(l.now() - at)
}

// Way is what queries have asked for on the way from the bucket since the start, parts of the data folder
// left out.
type Way struct {
	// First is first touches, and Memory and Later those of them that memory and a later tier served.
	First, Memory, Later int64
	// Pages is the pages that came from the bucket, and Requests the requests for them.
	Pages, Requests int64
}

// Way returns the sums.
func (l *Ledger) Way() (w Way) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range l.sums(nil) {
		t := l.tiers[i]
		if t.aside || t.name == Local {
			continue
		}
		first := s.hits.first - s.ages[localAge].first
		w.First += first
		switch {
		case i == 0:
			w.Memory += first
		case !t.source:
			w.Later += first
		default:
			w.Pages, w.Requests = s.hits.touches, s.reads
		}
	}
	return w
}
