package whatif

// Size is what is predicted for one size of the memory.
type Size struct {
	Factor float64 `json:"factor"`
	Memory int64   `json:"memory_bytes"`
	// HitRatio counts what is not known as misses. If it all were hits, the ratio would be AtMost.
	HitRatio float64 `json:"hit_ratio"`
	AtMost   float64 `json:"hit_ratio_at_most"`
	// Filled says whether the memory was full: if not, items were missed because they are new.
	Filled bool `json:"filled"`
}

// Result is a prediction.
type Result struct {
	Sizes []Size `json:"sizes"`
	// Gets and Hits are of the log, since the prediction began.
	Gets int64 `json:"gets"`
	Hits int64 `json:"hits"`
	// Lines, Skipped and Wrong are of the whole watch: lines read, left out by the server, and not understood.
	Lines   int64 `json:"lines"`
	Skipped int64 `json:"lines_skipped"`
	Wrong   int64 `json:"lines_not_understood"`
	// Keys is how many keys are simulated, and Share which share of all that is.
	Keys  int     `json:"keys_simulated"`
	Share float64 `json:"share_of_keys"`
}

// Result returns what is predicted by now.
func (m *Model) Result() Result {
	m.Flush()
	r := Result{Gets: m.gets, Hits: m.hits, Lines: m.lines, Skipped: m.skipped, Wrong: m.wrong, Keys: len(m.index), Share: m.rate}
	for i, s := range m.sizes {
		t := m.tallies[i]
		size := Size{Factor: m.config.Factors[i], Memory: int64(m.config.Factors[i] * float64(m.config.Memory)), Filled: s.evictions > 0}
		if all := float64(m.gets); all > 0 {
			// A sample has more or fewer requests than its share, mostly because of a few keys that are asked
			// for often and are hits: SHARDS adds the difference to the hits.
			size.HitRatio = min(1, max(0, (t.hits+all-t.gets)/all))
			size.AtMost = min(1, size.HitRatio+t.unknown/all)
		}
		r.Sizes = append(r.Sizes, size)
	}
	return r
}
