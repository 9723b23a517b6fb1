package head

import (
	"time"

	"github.com/shaledb/shale/internal/model"
)

// crowded are the series whose labels came although the known set is full of active ones. They are stored like all
// others; what they cost is their labels with every batch, and once a flush in the label store, where merging leaves one.
type crowded struct {
	// since the last flush, which is when labels in the buffer become labels in a part. Guarded by Head.mu.
	since map[crowdedKey]struct{}
	last  time.Time // of the log line; only Apply uses it
}

type crowdedKey struct {
	tenant uint16
	signal model.Signal
	key    model.Key
}

// crowdedBytes is what an entry of the map costs about.
const crowdedBytes = 64

// first reports whether the series is seen for the first time since the last flush.
func (c *crowded) first(k crowdedKey) bool {
	if _, seen := c.since[k]; seen {
		return false
	}
	if c.since == nil {
		c.since = make(map[crowdedKey]struct{})
	}
	c.since[k] = struct{}{}
	return true
}

// reportEvery is how often the log is told of a state that lasts.
const reportEvery = time.Minute

// reportCrowded counts label sets for whose series there was no room, and tells the log now and then.
func (h *Head) reportCrowded(sets int) {
	if sets == 0 {
		return
	}
	h.metrics.crowded.Add(float64(sets))
	if now := time.Now(); now.Sub(h.crowded.last) >= reportEvery {
		h.crowded.last = now
		h.o.Logger.Warn("the known set is full of active series: further ones are stored, and carry their labels with every batch until there is room; give Shale more memory, or send fewer series",
			"active", h.known.count.Load(), "limit", h.known.maxKeys)
	}
}
