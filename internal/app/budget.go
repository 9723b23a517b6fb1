package app

// budget splits the memory budget; docs/operations.md has the table. The shares are more than the whole: as a rule
// they are not all full at one time.
type budget struct {
	known, rows, labels, journal, pages, queries, compaction int64
}

func splitMemory(total int64) budget {
	const percent = 100
	return budget{
		known:   total * 20 / percent, // outside the Go heap
		rows:    total * 10 / percent, // and as much again while they are being sorted
		labels:  total * 12 / percent, // less, and a storm of new series flushes so often that it takes a fifth more time
		journal: total * 5 / percent,
		pages:   total * 10 / percent,
		queries: total * 30 / percent, // all together
		// Reading windows of compaction, and as much again for what it writes.
		compaction: min(total*4/percent, 64<<20),
	}
}
