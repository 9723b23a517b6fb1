package app

// budget is the memory budget in shares; docs/operations.md has the table. With everything that a share takes
// for a moment, and with the bodies of write requests, the shares are less than 1.15 of the budget: see
// TestSharesAddUp.
type budget struct {
	known, rows, labels, journal, pages, queries, forms, compaction, patterns int64
	answers, ledger                                                           int64
	// results are values of queries.
	results int64
	// ssdIndex and ssdQueue are of the cache on an SSD.
	ssdIndex, ssdQueue int64
	// memcachedQueue is of the cache in memcached.
	memcachedQueue int64
	// paths are what is known of Graphite paths and the rules of carbon, and aggregates the buffers of these.
	paths, aggregates int64
}

// forSSD gives a part of the pages to a cache on an SSD of that size: 32 bytes for each page of 16 KiB, at
// most a quarter of the pages, and a sixth for pages that wait to be written.
func (b budget) forSSD(bytes int64) budget {
	b.ssdIndex = min(bytes/(16<<10)*32, b.pages/4)
	b.ssdQueue = b.pages / 6
	b.pages -= b.ssdIndex + b.ssdQueue
	return b
}

// forResults gives a part of the pages to results: so many bytes, at most half.
func (b budget) forResults(bytes int64) budget {
	b.results = min(bytes, b.pages/2)
	b.pages -= b.results
	return b
}

// forMemcached gives a sixth of the pages to those that wait to be stored in memcached: a third of that to
// the queue, and twice as much to what is being sent.
func (b budget) forMemcached() budget {
	b.memcachedQueue = b.pages / 18
	b.pages -= 3 * b.memcachedQueue
	return b
}

// forCarbon gives an eighth of the pages to what is known of Graphite paths, and a quarter to aggregation.
func (b budget) forCarbon() budget {
	b.paths, b.aggregates = b.pages/8, b.pages/4
	b.pages -= b.paths + b.aggregates
	return b
}

func splitMemory(total int64) budget {
	const percent = 100
	b := budget{
		known:      total * 20 / percent, // outside the Go heap
		rows:       total * 10 / percent, // sorting takes as much again; it bounds the rows of one request
		labels:     total * 9 / percent,  // a smaller share makes a storm of new series flush too often
		journal:    total * 4 / percent,
		pages:      total * 55 / 1000,
		ledger:     min(total*6/1000, 8<<20),        // of touches, and of what other sizes would do
		queries:    total * 29 / percent,            // of all queries together; one may have 25 %
		forms:      max(total*2/percent, 5<<20),     // the largest form takes 4 MiB
		patterns:   total * 3 / 2 / percent,         // with what waits to be mined
		compaction: min(total*5/2/percent, 256<<20), // its inputs; the blocks that it writes take as much again
	}
	// A response is far smaller than the pages that it was made of.
	b.answers = b.pages / 16
	b.pages -= b.answers
	return b
}
