package app

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/dustin/go-humanize"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/pressure"
	"github.com/shaledb/shale/internal/store/known"
)

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
	// replicas are requests of replicas of HA pairs that are not elected.
	replicas int64
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

// forReplicas gives a quarter of the pages to requests of replicas that are not elected.
func (b budget) forReplicas() budget {
	b.replicas = b.pages / 4
	b.pages -= b.replicas
	return b
}

// uses is what takes parts of the pages.
type uses struct {
	carbon, replicas, memcached bool
	results, ssd                int64 // bytes; 0: off
}

// divided gives parts of the pages to what is used, one after the other.
func (b budget) divided(u uses) budget {
	if u.carbon {
		b = b.forCarbon()
	}
	if u.replicas {
		b = b.forReplicas()
	}
	b = b.forResults(u.results)
	if u.memcached {
		b = b.forMemcached()
	}
	if u.ssd > 0 {
		b = b.forSSD(u.ssd)
	}
	return b
}

// greatestRows bounds the share of rows. A larger buffer makes fewer and larger parts, which saves merges,
// but 768 MiB already take half a minute to fill at a million samples a second. What it would have, and
// sorting with it, goes to the known set: 11 GiB then hold 200 million series.
const greatestRows = 768 << 20

// greatestCompaction bounds the share of compaction: 64 inputs need no more.
const greatestCompaction = 256 << 20

func splitMemory(total int64) budget {
	const percent = 100
	b := budget{
		known:      total * 20 / percent, // outside the Go heap
		rows:       total * 10 / percent, // sorting takes as much again; it bounds the rows of one request
		labels:     total * 9 / percent,  // a smaller share makes a storm of new series flush too often
		journal:    total * 4 / percent,
		pages:      total * 55 / 1000,
		ledger:     min(total*6/1000, 8<<20),                   // of touches, and of what other sizes would do
		queries:    total * 29 / percent,                       // of all queries together; one may have 25 %
		forms:      max(total*2/percent, 5<<20),                // the largest form takes 4 MiB
		patterns:   total * 3 / 2 / percent,                    // with what waits to be mined
		compaction: min(total*5/2/percent, greatestCompaction), // its inputs; what it writes takes as much
	}
	if more := b.rows - greatestRows; more > 0 {
		b.rows -= more
		b.known += 2 * more
	}
	// A response is far smaller than the pages that it was made of.
	b.answers = b.pages / 16
	b.pages -= b.answers
	return b
}

// memoryOf returns the shares of a process. A role gets those that no other role of the process uses.
func memoryOf(c *config.Config) budget {
	b := splitMemory(c.MemoryBytes)
	if c.Has(config.RoleAll) {
		return b
	}
	gateway, ingest, query, merges := c.Has(config.RoleGateway), c.Has(config.RoleIngest), c.Has(config.RoleQuery), c.Has(config.RoleCompact)
	var free int64
	take := func(used bool, share *int64) {
		if !used {
			free, *share = free+*share, 0
		}
	}
	take(gateway || ingest, &b.known)
	take(ingest, &b.rows)
	take(ingest, &b.labels)
	take(gateway || ingest, &b.journal)
	take(query || ingest, &b.pages)
	take(query || ingest, &b.queries)
	take(query, &b.answers)
	take(false, &b.patterns)
	take(merges, &b.compaction)
	// A third stays free: requests take it for a moment.
	switch free -= free / 3; {
	case ingest: // what a head needs grows with each share, and they are as in the role all
	case query:
		b.pages += free / 2
		b.queries += free / 2
	case gateway:
		b.known += free / 2
		b.journal += free / 2
	case merges: // what it writes takes as much again
		b.compaction = min(b.compaction+free/4, greatestCompaction)
	}
	// Of a share that two roles need, each has a half.
	if gateway && ingest {
		b.known, b.journal = b.known/2, b.journal/2
	}
	if ingest && query {
		b.pages, b.queries = b.pages/2, b.queries/2
	}
	return b
}

// outsideHeap returns the memory of the known sets of a process.
func outsideHeap(c *config.Config) int64 {
	b := memoryOf(c)
	if c.Has(config.RoleGateway) && c.Has(config.RoleIngest) {
		return 2 * b.known
	}
	return b.known
}

// What a unit of work costs, as measured: docs/operations.md, section Capacity, names the benchmarks.
const (
	cpuPerMillionKnown = 0.8 // CPU-seconds for samples of known series by remote write
	cpuPerMillionNew   = 3.2 // CPU-seconds for new series by remote write
	cpuPerGBOfLines    = 14  // CPU-seconds with 400 streams
	diskPerSample      = 0.85
	diskPerLineByte    = 0.18
)

// usableCPU is the part of the processors that is planned for writes; queries and merges have the rest.
const usableCPU = 0.5

// Explain says what the memory of a resolved configuration is divided into, and what the machine will hold.
func Explain(w io.Writer, c *config.Config, source string) error {
	b := memoryOf(c).divided(uses{carbon: c.Carbon.Any(), replicas: c.HA.On(), memcached: len(c.Memcached.List()) > 0, results: c.Results.MaxBytes, ssd: c.SSD.Bytes})
	var series int64
	if b.known > 0 {
		set, err := known.New(b.known)
		if err != nil {
			return err
		}
		series = set.Cap()
		set.Close()
	}
	cores := pressure.Processors()
	seconds := usableCPU * float64(cores) // of CPU for writes in each second

	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "memory budget\t%s\tof %s\n", humanize.IBytes(uint64(c.MemoryBytes)), source)
	for _, s := range []struct {
		name, what string
		bytes      int64
	}{
		{"known set", "the series that are active", b.known},
		{"rows", "rows that are in no part yet; sorting takes as much again", b.rows},
		{"labels", "labels of new series that are in no part yet", b.labels},
		{"journal", "batches that wait for the disk", b.journal},
		{"bodies", "write requests in progress; limits.inflight-bytes", c.Write.MaxInflightBytes},
		{"queries", "all queries together; query.max-bytes bounds one", b.queries},
		{"forms", "forms and bodies of queries", b.forms},
		{"pages", "cache of pages of parts and blocks", b.pages},
		{"results", "cache of results; cache.result-memory", b.results},
		{"answers", "cache of whole responses", b.answers},
		{"ssd", "index and queue of the cache on an SSD", b.ssdIndex + b.ssdQueue},
		{"memcached", "pages on their way to memcached", 3 * b.memcachedQueue},
		{"carbon", "paths and aggregates of carbon's rules", b.paths + b.aggregates},
		{"replicas", "requests of replicas of HA pairs that are not elected", b.replicas},
		{"patterns", "patterns of log lines", b.patterns},
		{"ledger", "statistics of the caches", b.ledger},
		{"compaction", "inputs of a merge; its result takes as much again", b.compaction},
	} {
		if s.bytes > 0 {
			fmt.Fprintf(t, "  %s\t%s\t%.1f %%\t%s\n", s.name, humanize.IBytes(uint64(s.bytes)), 100*float64(s.bytes)/float64(c.MemoryBytes), s.what)
		}
	}
	fmt.Fprintf(t, "\nthis machine will hold\n")
	for _, s := range []struct {
		name string
		n    float64
		unit string
	}{
		{"active series", float64(series), "at most; further ones carry their labels with every batch"},
		{"partitions", float64(mostPartitions(c)), "at most; with more, their heads take more than their shares of the memory"},
		{"samples", seconds / cpuPerMillionKnown * 1e6, fmt.Sprintf("a second of known series, with half of %d cores", cores)},
		{"new series", seconds / cpuPerMillionNew * 1e6, "a second, with half of the cores"},
		{"log lines", seconds / cpuPerGBOfLines * 1e9, "bytes a second, with half of the cores"},
		{"one query", float64(c.Query.MaxBytes), "bytes of memory; then it is refused"},
		{"pages in memory", float64(b.pages), "bytes"},
		{"samples on disk", float64(c.DiskBytes) / diskPerSample, "if all of the disk is theirs"},
		{"lines on disk", float64(c.DiskBytes) / diskPerLineByte, "bytes, if all of the disk is theirs"},
	} {
		if s.n > 0 {
			fmt.Fprintf(t, "  %s\t%s\t%s\n", s.name, rounded(s.n), s.unit)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\nThe rates follow from figures of virtual machines with 2 cores: docs/operations.md, section Capacity. Measure yours with shale load.")
	return err
}

// rounded writes a number with two or three digits.
func rounded(n float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, " trillion"}, {1e9, " billion"}, {1e6, " million"}, {1e3, " thousand"}} {
		if n >= u.size {
			if n /= u.size; n < 10 {
				return fmt.Sprintf("%.1f%s", n, u.name)
			}
			return fmt.Sprintf("%.0f%s", n, u.name)
		}
	}
	return fmt.Sprintf("%.0f", n)
}
