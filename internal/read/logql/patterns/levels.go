package patterns

import (
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// levels are the levels of lines, as in detected_level. Any other level is the last one.
var levels = [...]string{"trace", "debug", "info", "warn", "error", "critical", "fatal", "unknown"}

const levelLabel = "detected_level"

func levelOf(metadata model.Labels) uint8 {
	v := metadata.Get(levelLabel)
	for i := range levels {
		if len(v) == len(levels[i]) && strings.EqualFold(string(v), levels[i]) {
			return uint8(i)
		}
	}
	return uint8(len(levels) - 1)
}

// byLevel has a miner for each level that has lines.
type byLevel [len(levels)]*Miner

// miner returns the miner of a level, and how many bytes it had.
func (b *byLevel) miner(level uint8) (m *Miner, bytes int64) {
	if b[level] == nil {
		b[level] = NewMiner()
		return b[level], 0
	}
	return b[level], b[level].bytes
}

// addTo adds the patterns of all levels.
func (b *byLevel) addTo(to *Totals, since, fineSince int64) error {
	for level, m := range b {
		if m == nil {
			continue
		}
		if err := to.add(m, levels[level], since, fineSince); err != nil {
			return err
		}
	}
	return nil
}
