package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shaledb/shale/bench/result"
	"github.com/shaledb/shale/bench/system"
)

// load is a named load: what it does with a system, and which of its figures are in tables.
type load struct {
	name, about string
	// speaks is the protocol that a system must support: graphite, v1, v2, logs.
	speaks string
	// only, if set, reports whether the load is for a system.
	only func(*system.System) bool
	run  func(ctx context.Context, t *trial) error
	// columns are the figures of its table, ratios those that are compared, curves those that are plotted over
	// time.
	columns, ratios, curves []string
	// long leaves it out unless it is named.
	long bool
	// more makes a table of additional records, which is put below that of the load.
	more func(records []result.Record) string
}

// fits reports whether the load can run against a system.
func (l *load) fits(s *system.System) bool { return s.Speaks(l.speaks) && (l.only == nil || l.only(s)) }

// queriesLoad is the load whose records are those of its queries.
const queriesLoad = "queries"

// The loads that need slow syncs.
const (
	slowSyncLoad    = "rw1-slow-sync"
	slowSyncNewLoad = "rw1-slow-sync-new"
)

// loads returns all loads, in the order in which they are run and reported.
func loads() []*load {
	write := []string{"samples/s", "cpu-s/M", "cpu-s/M-settled", "p50-s", "p99-s", "rss-B", "peak-B", "settled-rss-B", "lost", "retries"}
	disk := []string{"samples/s", "cpu-share", "cpu-s/M-settled", "writes/s", "write-B/s", "syncs/s", "device-writes/s", "peak-B"}
	ratios := []string{"samples/s", "cpu-s/M-settled", "peak-B"}
	return append([]*load{
		{name: "graphite-known", about: "Graphite lines, 100,000 names that are known, 4 connections, as fast as they are taken",
			speaks: "graphite", run: graphiteKnown, columns: write, ratios: ratios},
		{name: "graphite-new", about: "Graphite lines, 1,000,000 names that are new, one point each",
			speaks: "graphite", run: graphiteNew, columns: write, ratios: ratios},
		{name: "graphite-100k-per-second", about: "Graphite lines, 100,000 names, one point of each a second",
			speaks: "graphite", run: graphiteSteady, columns: disk, ratios: []string{"cpu-share", "cpu-s/M-settled", "write-B/s"}},
		{name: "rw1-new", about: "Remote write 1.0, 1,000,000 series that are new, 16 labels of about 580 bytes each, 2,000 in a request, 4 senders",
			speaks: "v1", run: remoteWriteNew("v1"), columns: write, ratios: ratios},
		{name: "rw1-known", about: "Remote write 1.0, the same 1,000,000 series once they are known",
			speaks: "v1", run: remoteWriteKnown("v1"), columns: write, ratios: ratios},
		{name: "rw2-known", about: "Remote write 2.0, the same 1,000,000 series once they are known, 8 senders",
			speaks: "v2", run: remoteWriteKnown("v2", "--concurrency", "8"), columns: write, ratios: ratios},
		{name: slowSyncLoad, about: "Remote write 1.0, known series, 12 senders, with every sync of a file taking 5 ms longer (bench/slow)",
			speaks: "v1", only: isThisTree, run: slowSync(remoteWriteKnown("v1", "--concurrency", "12")), columns: write, ratios: ratios},
		{name: slowSyncNewLoad, about: "The same over new series, 4 senders",
			speaks: "v1", only: isThisTree, run: slowSync(remoteWriteNew("v1")), columns: write, ratios: ratios},
		storm10M.load("memory-10m", "10,000,000 series with a memory budget of 1 GiB, then all of them relabelled within 60 s, then 5 minutes of the new ones"),
		storm20M.load("memory-20m", "20,000,000 series with a budget of 1900 MiB, likewise"),
		storm200M.load("memory-200m", "200,000,000 series with a budget of 14 GiB, a sample every 10 minutes, all relabelled within 10 minutes; takes hours"),
		{name: "disk-gauges", about: "20,000 gauges of 0 to 99, a sample every 60 s for 2 h, and for a day",
			speaks: "v1", only: finishes, run: diskGauges, columns: []string{"samples", "disk-B/sample", "compacted-disk-B/sample", "blocks", "cpu-s/M-settled"},
			ratios: []string{"disk-B/sample", "compacted-disk-B/sample"}},
		{name: "disk-self-scrape", about: "Metrics of a Prometheus that scrapes itself once a second, for 8 times the duration, and sends them on; needs --prometheus",
			speaks: "v1", only: finishes, run: diskScrape, long: true, columns: []string{"samples", "disk-B/sample"}, ratios: []string{"disk-B/sample"}},
		{name: "soak", about: "Remote write 1.0 at half of the rate that the system reaches, for hours",
			speaks: "v1", run: soak, long: true, columns: []string{"samples/s", "cpu-share", "peak-B", "rss-B", "parts", "p99-s", "growth-rss-%", "growth-parts-%", "growth-p99-%", "lost"},
			curves: []string{"rss-B", "parts", "p99-s"}},
		{name: queriesLoad, about: "Named queries, each asked several times, from buffers, from parts on the disk, and from the bucket",
			speaks: "v1", run: queries, columns: nil},
	}, logLoads()...)
}

// isThisTree picks the system that is built from this tree, whose server can be built with delays.
func isThisTree(s *system.System) bool { return s.Name == thisTree }

// finishes picks the systems that can be made to finish their work at once. Of the Shale builds only this
// tree can, since its code does it.
func finishes(s *system.System) bool { return s.Kind != system.Shale || isThisTree(s) }

// choose returns the loads of the given names; all that are not long if there are none.
func choose(names []string) (chosen []*load, err error) {
	all := loads()
	if len(names) == 0 {
		return slices.DeleteFunc(all, func(l *load) bool { return l.long }), nil
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(l *load) bool { return l.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no load %q; there are %s", name, strings.Join(loadNames(), ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func loadNames() (names []string) {
	for _, l := range loads() {
		names = append(names, l.name)
	}
	return names
}
