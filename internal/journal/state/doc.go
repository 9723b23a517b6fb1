// Package state encodes what processes tell each other by the state topic of Kafka. A partition lacks labels,
// tenants have so many series, the bucket has a partition so far, and of an HA pair this replica is stored.
//
// A record has a key, and the last one of a key counts. Its value is JSON with a version. A reader skips keys
// and versions that it does not know, so that processes of two versions may run at the same time. What the
// package decodes is bounded. It reaches no broker.
package state
