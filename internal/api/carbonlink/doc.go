// Package carbonlink answers queries of the cache of carbon, which graphite-web sends to port 7002 of a
// carbon-cache for points that are not in whisper files yet. So an old graphite-web sees fresh points.
//
// A request and its answer are pickled dicts, each with its length before it. The package owns that protocol
// and its bounds: connections, the length of a request and of an answer. It never reads the store: a Source
// does.
package carbonlink
