package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxSeconds bounds steps and retentions: 200 years, which int64 nanoseconds have on both sides of 1970.
const maxSeconds = 200 * 365 * 86400

// units are the names of units with their seconds. As in whisper, any beginning of a name stands for it.
func units() []struct {
	name    string
	seconds int64
} {
	return []struct {
		name    string
		seconds int64
	}{
		{"seconds", 1}, {"minutes", 60}, {"hours", 3600}, {"days", 86400}, {"weeks", 7 * 86400}, {"years", 365 * 86400},
	}
}

// ParseRetentions parses archives as storage-schemas.conf has them: 60s:1d,5m:30d. They are sorted by step.
func ParseRetentions(text string) ([]Archive, error) {
	var archives []Archive
	for part := range strings.SplitSeq(text, ",") {
		a, err := parseArchive(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("retentions: %w", err)
		}
		archives = append(archives, a)
	}
	if len(archives) > maxArchives {
		return nil, fmt.Errorf("retentions: %d archives are too many: must be at most %d", len(archives), maxArchives)
	}
	slices.SortStableFunc(archives, func(a, b Archive) int { return int(a.Step - b.Step) })
	if err := Validate(archives); err != nil {
		return nil, fmt.Errorf("retentions: %w", err)
	}
	return archives, nil
}

func parseArchive(text string) (a Archive, err error) {
	step, points, ok := strings.Cut(text, ":")
	if !ok {
		return a, fmt.Errorf("expected STEP:RETENTION such as 60s:1d, found %q", text)
	}
	if a.Step, _, err = parseTime(step); err != nil {
		return a, err
	}
	n, unit, err := parseTime(points)
	if err != nil {
		return a, err
	}
	if a.Points = n; unit && a.Step > 0 {
		a.Points /= a.Step
	}
	return a, nil
}

// parseTime parses a number with or without a unit.
func parseTime(text string) (n int64, unit bool, err error) {
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz")
	u, err := strconv.ParseUint(digits, 10, 40)
	if err != nil {
		return 0, false, fmt.Errorf("expected a number, or a number and a unit of s, m, h, d, w or y, found %q", text)
	}
	n = int64(u)
	name := text[len(digits):]
	if name == "" {
		return n, false, nil
	}
	for _, u := range units() {
		if strings.HasPrefix(u.name, name) {
			if n > maxSeconds/u.seconds {
				return 0, false, fmt.Errorf("%q is too long: must be at most %d years", text, maxSeconds/(365*86400))
			}
			return n * u.seconds, true, nil
		}
	}
	return 0, false, fmt.Errorf("unknown unit in %q: expected s, m, h, d, w or y", text)
}
