// Package state encodes what processes tell each other by the state topic of Kafka: that a partition lacks
// labels, and how many series tenants have.
//
// A record has a key, and the last one of a key counts. Its value is JSON with a version. A reader skips keys
// and versions that it does not know, so that processes of two versions may run at the same time. What the
// package decodes is bounded. It reaches no broker.
package state
