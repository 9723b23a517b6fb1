package lokipush

import (
	"time"

	"github.com/shaledb/shale/internal/write"
)

// legacyEntry parses {"ts": "2026-01-01T00:00:00Z", "line": "..."}.
func (w *walker) legacyEntry(s *scanner) error {
	if err := s.expect('{'); err != nil {
		return err
	}
	var at time.Time
	var line []byte
	for n := 0; ; n++ {
		more, err := s.more(n, '}')
		if err != nil {
			return err
		}
		if !more {
			break
		}
		name, err := s.name()
		if err != nil {
			return err
		}
		switch string(name) {
		case "ts", "timestamp":
			begin := s.p
			raw, _, err := s.text("a timestamp")
			if err != nil {
				return err
			}
			if at, err = time.Parse(time.RFC3339Nano, string(raw)); err != nil {
				s.p = begin
				return s.malformed("a timestamp that is not in RFC 3339 format")
			}
		case "line":
			if line, err = s.plain("a line", &w.arena); err != nil {
				return err
			}
		default:
			if err := s.skip(0); err != nil {
				return err
			}
		}
	}
	if y := at.Year(); y < 1678 || y > 2261 {
		w.entries.LeaveOut(write.ReasonTimeRange, line, func() string {
			return "entry has the timestamp " + at.Format(time.RFC3339) + ", which is not between the years 1678 and 2261"
		})
		return nil
	}
	return w.entries.Add(at.UnixNano(), line)
}
