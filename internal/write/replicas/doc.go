// Package replicas elects, of the Prometheus servers that scrape the same targets, the one that is stored.
//
// The servers of an HA pair write the same series with a label of their own. A [Table] has a leader for each
// tenant and cluster: the first replica that writes. Samples of the others are dropped, with a response that
// their senders take for success. When the leader has been silent for some time, the next replica that
// writes is elected. The label of the replica is never stored, so the series go on.
//
// Only the clock of this machine decides, so the clocks of the replicas may differ. But a new leader with a
// slow clock would repeat a stretch that the one before has written. Its samples up to the newest stored one
// are dropped.
//
// Requests of replicas that are not elected are kept in bounded memory until the leader has written as much.
// Those of a new leader are due after its election, so no gap remains.
//
// The table is saved to a small file, and at a start each leader has the whole time again. The package does
// not see samples: the receiver asks it for a verdict on a series, and drops or keeps its rows.
package replicas
