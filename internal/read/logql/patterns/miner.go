package patterns

const (
	// maxSimilar bounds the templates of one structure: then a line joins the most similar one, even if it is
	// not similar.
	maxSimilar = 16
	// maxClusters bounds the templates of a miner. The one that had no line for the longest time is forgotten.
	maxClusters = 256
	// minerBytes is about what a miner takes besides its clusters.
	minerBytes = 128
)

// Miner makes patterns of lines that have something in common, such as their stream. It is used by one
// goroutine at a time.
type Miner struct {
	structures map[uint64][]*cluster
	clusters   int
	lines      uint64
	bytes      int64
	forgotten  int // clusters
}

// NewMiner returns a Miner without patterns.
func NewMiner() *Miner { return &Miner{structures: make(map[uint64][]*cluster), bytes: minerBytes} }

// Cutter cuts lines into words for miners. It is used by one goroutine.
type Cutter struct{ tokens *tokens }

// NewCutter returns a Cutter. All lines of a miner must be cut by the same one.
func NewCutter() *Cutter { return &Cutter{newTokens()} }

// renewed returns a Cutter for the same miners that shares no memory with this one.
func (c *Cutter) renewed() *Cutter { return &Cutter{&tokens{seed: c.tokens.seed}} }

// Add adds a line that stands for a number of lines. Its interval begins at a time in Unix seconds.
func (m *Miner) Add(cut *Cutter, line []byte, begin uint32, lines float32) {
	cut.tokens.cut(line)
	m.add(cut.tokens, begin, lines)
}

// add adds a line that was cut.
func (m *Miner) add(t *tokens, begin uint32, lines float32) {
	c := m.find(t)
	before := cap(c.counts)
	c.counts = addTo(c.counts, begin, lines)
	m.bytes += bucketBytes * int64(cap(c.counts)-before)
	m.lines++
	c.used = m.lines
}

// find returns the cluster of a line, changed so that its pattern matches the line.
func (m *Miner) find(t *tokens) *cluster {
	list := m.structures[t.structure]
	var best, similar *cluster
	most, mostSimilar := -1, -1
	for _, c := range list {
		same, ok := c.similarity(t.words)
		if same > most {
			best, most = c, same
		}
		if ok && same > mostSimilar {
			similar, mostSimilar = c, same
		}
	}
	switch {
	case similar != nil:
		best = similar
	case len(list) < maxSimilar:
		if m.clusters == maxClusters {
			m.forgetOne()
		}
		c := newCluster(t)
		m.structures[t.structure] = append(m.structures[t.structure], c)
		m.clusters++
		m.bytes += c.size()
		return c
	}
	best.merge(t.words)
	return best
}

// forgetOne forgets the cluster that had no line for the longest time.
func (m *Miner) forgetOne() {
	var oldest *cluster
	for _, list := range m.structures {
		for _, c := range list {
			if oldest == nil || c.used < oldest.used {
				oldest = c
			}
		}
	}
	m.remove(oldest)
	m.forgotten++
}

func (m *Miner) remove(c *cluster) {
	list := m.structures[c.structure]
	for i := range list {
		if list[i] == c {
			list[i] = list[len(list)-1]
			list[len(list)-1] = nil
			list = list[:len(list)-1]
			break
		}
	}
	if m.structures[c.structure] = list; len(list) == 0 {
		delete(m.structures, c.structure)
	}
	m.clusters--
	m.bytes -= c.size()
}

// change replaces the counts of all clusters and removes those that have none left.
func (m *Miner) change(counts func([]bucket) []bucket) {
	for _, list := range m.structures {
		for i := len(list) - 1; i >= 0; i-- {
			c := list[i]
			m.bytes -= bucketBytes * int64(cap(c.counts))
			c.counts = counts(c.counts)
			m.bytes += bucketBytes * int64(cap(c.counts))
			if len(c.counts) == 0 {
				m.remove(c)
			}
		}
	}
}
