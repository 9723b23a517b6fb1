// Package roles plans the machines of roles on Kafka: `shale plan cluster`.
//
// It owns what a unit of work costs each role, as measured, and how loads become machines, partitions,
// requests to the bucket and money. It knows nothing of a running server.
package roles
