package head

import (
	"time"

	"github.com/shaledb/shale/internal/model"
)

// crowdedKey is a series whose labels came although the known set is full of active ones. Such a series is
// stored like all others. It costs its labels with every batch, and once per flush in the label store, where
// merging leaves one set.
type crowdedKey struct {
	tenant uint16
	signal model.Signal
	key    model.Key
}

// crowdedBytes is the approximate size of an entry in the map of such series.
const crowdedBytes = 64

// reportEvery is the least time between log lines about a lasting state.
const reportEvery = time.Minute

// reportCrowded counts label sets of series that the known set has no room for, and logs at most once per
// reportEvery.
func (h *Head) reportCrowded(sets int) {
	if sets == 0 {
		return
	}
	h.metrics.crowded.Add(float64(sets))
	if now := time.Now(); now.Sub(h.adding.reported) >= reportEvery {
		h.adding.reported = now
		h.o.Logger.Warn("the known set is full: further series are stored, but carry their labels with every batch until there is room; give Shale more memory or send fewer series",
			"active", h.known.Len(), "limit", h.known.Cap())
	}
}
