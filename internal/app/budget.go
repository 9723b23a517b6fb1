package app

// budget is the memory budget in shares; docs/operations.md has the table. Rows and labels take twice their
// share while they are sorted, so that all shares together exceed the budget. They are rarely full at the
// same time.
type budget struct {
	known, rows, labels, journal, pages, queries, forms, compaction int64
}

func splitMemory(total int64) budget {
	const percent = 100
	return budget{
		known:   total * 20 / percent, // outside the Go heap
		rows:    total * 10 / percent, // sorting takes as much again
		labels:  total * 12 / percent, // a smaller share makes a storm of new series flush too often
		journal: total * 5 / percent,
		pages:   total * 10 / percent,
		queries: total * 30 / percent,        // of all queries together
		forms:   max(total*2/percent, 5<<20), // the largest form takes 4 MiB
		// For the inputs of compaction. The blocks that it writes take as much again.
		compaction: min(total*4/percent, 64<<20),
	}
}
