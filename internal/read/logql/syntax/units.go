package syntax

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// parseDuration reads a duration as Prometheus writes it (1d, 1h30m) or as Go does (1.5h, -5m, 10us).
func parseDuration(s string) (time.Duration, error) {
	if d, err := model.ParseDuration(s); err == nil {
		return time.Duration(d), nil
	}
	return time.ParseDuration(s)
}

// parseBytes reads a size: a number and a unit, decimal (kB, MB) or binary (KiB, MiB), in any case of
// letters; without a B (5k) too.
func parseBytes(s string) (uint64, error) {
	end := 0
	for end < len(s) && (s[end] == '.' || '0' <= s[end] && s[end] <= '9') {
		end++
	}
	n, err := strconv.ParseFloat(s[:end], 64)
	if err != nil {
		return 0, err
	}
	unit := strings.ToLower(strings.TrimSpace(s[end:]))
	unit = strings.TrimSuffix(unit, "b")
	base := 1000.0
	if cut, ok := strings.CutSuffix(unit, "i"); ok && cut != "" {
		base, unit = 1024, cut
	}
	e := 0
	if unit != "" {
		if len(unit) > 1 || !strings.Contains("kmgtpe", unit) {
			return 0, fmt.Errorf("unhandled size name: %v", unit)
		}
		e = strings.Index("kmgtpe", unit) + 1
	}
	n *= math.Pow(base, float64(e))
	if n >= math.MaxUint64 {
		return 0, fmt.Errorf("too large: %v", s)
	}
	return uint64(n), nil
}
