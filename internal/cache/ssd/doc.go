// Package ssd is the tier of the cache on a local disk: a log of records in large segments.
//
// It owns the files of one folder and their index in memory. It survives restarts with its content and the
// order of its eviction. A record that is damaged in any way is a miss, and a disk that is slow, full or
// failing takes the tier out until it has recovered. It never fails a query, never keeps a server from
// starting, and never writes more in a day than its budget.
package ssd
