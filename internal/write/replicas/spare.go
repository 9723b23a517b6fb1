package replicas

// Spare is a request of a replica that is not elected. It is kept as sent until the leader has written as
// much, so that an election leaves no gap.
type Spare struct {
	// Request is what the receiver needs to store the rows.
	Request any
	// Bytes is the memory that the request takes.
	Bytes int64
	// Newest is the time of its newest sample, in Unix nanoseconds.
	Newest int64

	replica string
	// tries is how often it could not be stored.
	tries int
}

// maxTries is how often a kept request is tried that cannot be stored. Each try may store the rows of known
// series once more.
const maxTries = 30

// spares are the requests that are kept for one cluster. The mutex of the table guards them.
type spares struct {
	// waiting are those of replicas that are not elected, the oldest first.
	waiting []Spare
	// due are those of the leader that is elected now. They are stored after its next request.
	due   []Spare
	bytes int64
}

// Keep keeps a request of a replica that is not elected, unless the leader has written as much. It forgets
// the oldest request of the cluster that holds the most if there is no room.
func (t *Table) Keep(c *Cluster, replica []byte, s Spare) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.forgotten || s.Newest <= c.newest || s.Bytes > t.o.SpareBytes {
		return
	}
	s.replica = string(replica)
	if s.replica == c.replica { // it has been elected meanwhile
		t.holdLocked(c, &c.spares.due, s)
	} else {
		t.holdLocked(c, &c.spares.waiting, s)
	}
	for t.spareBytes > t.o.SpareBytes {
		var most *Cluster
		for other := range t.holding {
			if most == nil || other.spares.bytes > most.spares.bytes {
				most = other
			}
		}
		if len(most.spares.waiting) > 0 {
			t.dropLocked(most, &most.spares.waiting)
		} else {
			t.dropLocked(most, &most.spares.due)
		}
		t.metrics.evicted.Inc()
	}
}

// Due takes the next kept request of the leader of a cluster, and reports whether there was one.
func (t *Table) Due(c *Cluster) (Spare, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(c.spares.due) == 0 {
		return Spare{}, false
	}
	s := c.spares.due[0]
	t.dropLocked(c, &c.spares.due)
	return s, true
}

// PutBack keeps a request that could not be stored yet, for the next try. It forgets one that was
// tried often.
func (t *Table) PutBack(c *Cluster, s Spare) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.tries++; s.tries >= maxTries {
		t.metrics.gaveUp.Inc()
		return
	}
	if !c.forgotten && s.replica == c.replica {
		t.holdLocked(c, &c.spares.due, s)
	}
}

// TookOver counts a kept request whose rows have been stored.
func (t *Table) TookOver() { t.metrics.tookOver.Inc() }

// takeOverLocked makes the requests of a new leader due that have newer rows than those of the leader before.
// What is still due to that one waits again: it may be elected once more.
func (t *Table) takeOverLocked(c *Cluster) {
	all := append(c.spares.due, c.spares.waiting...)
	c.spares.due, c.spares.waiting = nil, nil
	for _, s := range all {
		switch {
		case s.Newest <= c.until:
			t.freeLocked(c, s.Bytes)
		case s.replica == c.replica:
			c.spares.due = append(c.spares.due, s)
		default:
			c.spares.waiting = append(c.spares.waiting, s)
		}
	}
}

// trimLocked forgets requests whose times the leader has reached.
func (t *Table) trimLocked(c *Cluster) {
	for len(c.spares.waiting) > 0 && c.spares.waiting[0].Newest <= c.newest {
		t.dropLocked(c, &c.spares.waiting)
	}
}

func (t *Table) holdLocked(c *Cluster, list *[]Spare, s Spare) {
	*list = append(*list, s)
	c.spares.bytes += s.Bytes
	t.spareBytes += s.Bytes
	t.holding[c] = struct{}{}
	t.metrics.spareBytes.Set(float64(t.spareBytes))
}

// dropLocked takes the first request off a list.
func (t *Table) dropLocked(c *Cluster, list *[]Spare) {
	bytes := (*list)[0].Bytes
	(*list)[0] = Spare{} // for the garbage collector
	*list = (*list)[1:]
	t.freeLocked(c, bytes)
}

func (t *Table) freeLocked(c *Cluster, bytes int64) {
	c.spares.bytes -= bytes
	t.spareBytes -= bytes
	if c.spares.bytes == 0 {
		delete(t.holding, c)
	}
	t.metrics.spareBytes.Set(float64(t.spareBytes))
}

// forgetSparesLocked gives the memory of a cluster that is forgotten back.
func (t *Table) forgetSparesLocked(c *Cluster) {
	c.forgotten = true
	for len(c.spares.due) > 0 {
		t.dropLocked(c, &c.spares.due)
	}
	for len(c.spares.waiting) > 0 {
		t.dropLocked(c, &c.spares.waiting)
	}
}
