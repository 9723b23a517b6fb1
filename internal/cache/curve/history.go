package curve

import (
	"math"
	"time"
)

// begin begins an hour.
func (s *Sampler) begin(now int64) {
	if s.caches == nil {
		s.caches = s.mustCaches()
	}
	s.caches.reset()
	s.now = Hour{Start: now / int64(time.Second), Share: s.share(), Sizes: s.o.Sizes}
	s.minute = now / int64(time.Minute)
	if s.o.Actual != nil {
		s.before = s.o.Actual()
	}
}

// turn ends the minute and the hour if they are over.
func (s *Sampler) turn(now int64) {
	if minute := now / int64(time.Minute); minute != s.minute {
		s.minute = minute
		s.caches.endMinute()
	}
	if now/int64(time.Hour) == s.now.Start/3600 {
		return
	}
	if h := s.hour(now); len(h.Points) > 0 && h.Points[0].First > 0 {
		s.hours = append(s.hours, h)
		if len(s.hours) > keptHours {
			s.hours = append(s.hours[:0], s.hours[len(s.hours)-keptHours:]...)
		}
	}
	s.begin(now)
}

// hour returns the current hour as far as it has come.
func (s *Sampler) hour(now int64) Hour {
	h := s.now
	h.Seconds = float64(now)/1e9 - float64(h.Start)
	h.Points = s.caches.points()
	for i := range h.Points {
		if len(s.now.Points) > 0 {
			h.Points[i].add(&s.now.Points[i])
		}
	}
	if s.o.Actual != nil {
		h.Actual = s.o.Actual()
		h.Actual.subtract(s.before)
	}
	return h
}

// carry keeps the counts of this hour as those of a sample that is so many times as large.
func (s *Sampler) carry(points []Point, times float64) {
	if len(s.now.Points) == 0 {
		s.now.Points = make([]Point, len(points))
	}
	for i := range points {
		s.now.Points[i].add(&points[i])
		s.now.Points[i].scale(times)
	}
}

// scale multiplies all counts.
func (p *Point) scale(times float64) {
	for _, n := range []*int64{
		&p.First, &p.FirstBytes, &p.RAMHits, &p.SSDHits, &p.SSDBytes, &p.Missed, &p.MissedBytes, &p.PeakMissed, &p.PeakServed, &p.PeakServedBytes,
		&p.Written, &p.Evicted, &p.EvictedBytes, &p.Unread,
	} {
		*n = int64(math.Round(float64(*n) * times))
	}
}

// Hours returns the curves of the last hours, the current one last.
func (s *Sampler) Hours(most int) []Hour {
	s.Process()
	s.mu.Lock()
	defer s.mu.Unlock()
	list := append([]Hour(nil), s.hours...)
	list = append(list, s.hour(s.o.Now()))
	return list[max(0, len(list)-most):]
}
