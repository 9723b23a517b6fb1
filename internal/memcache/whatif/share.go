package whatif

const (
	// seenBits is the size of the bitmap of keys: 4 MiB. It counts 16 million keys before it is half full.
	seenBits = 1 << 25
	// steps is how often the sample can shrink by an eighth before all larger steps count as one: to one key of
	// 700 million.
	steps = 152
)

// shares knows which share of the bytes of each class is in the sample.
//
// Keys are drawn by chance, so a class has more or less of them than the sample as a whole. A model that took
// one share for all gave the last free page to the wrong class: one of three pages was missing, and the hit
// ratio was 3.3 points off in every third run, with half of the keys in the sample. So every key is counted
// once, by its class and by the step at which the sample loses it.
type shares struct {
	seen []uint64 // a bit for each hash
	set  int
	// bytes are those of the chunks of all keys that were seen.
	bytes [256][steps + 1]float64
	// all is their sum, and sampled the part of it that the sample still has.
	all, sampled [256]float64
	thresholds   [steps]uint64
	step         int // how often the sample has shrunk
}

func newShares() *shares {
	s := &shares{seen: make([]uint64, seenBits/64)}
	threshold := uint64(1) << 63
	for i := range s.thresholds {
		threshold = thinner(threshold)
		s.thresholds[i] = threshold
	}
	return s
}

// thinner returns the threshold after the next step.
func thinner(threshold uint64) uint64 { return threshold - max(1, threshold/8) }

// count takes a key and the chunk that it needs, if it is new. Beyond half of the bitmap, too many keys would
// look as if they were known: what was counted until then stays.
func (s *shares) count(hash uint64, class uint8, chunk int64) {
	word, bit := &s.seen[hash%seenBits/64], uint64(1)<<(hash%64)
	if *word&bit != 0 || s.set >= seenBits/2 {
		return
	}
	*word |= bit
	// Of new keys, this share finds its bit set already. One that does not stands for those.
	weight := float64(chunk) / (1 - float64(s.set)/seenBits)
	s.set++
	lost := 0
	for lost < steps && hash < s.thresholds[lost] {
		lost++
	}
	s.bytes[class][lost] += weight
	s.all[class] += weight
	if lost >= s.step {
		s.sampled[class] += weight
	}
}

// shrink makes the sample smaller by a step.
func (s *shares) shrink() {
	if s.step == steps {
		return
	}
	for class := range s.sampled {
		s.sampled[class] -= s.bytes[class][s.step]
	}
	s.step++
}

// of returns the share of a class, or that of all keys if the class has too little to tell.
func (s *shares) of(class uint8, rate float64) float64 {
	if s == nil || s.sampled[class] <= 0 {
		return rate
	}
	return s.sampled[class] / s.all[class]
}
