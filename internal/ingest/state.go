package ingest

// State says what an owner does with a partition.
type State string

// The states of a partition.
const (
	// Opening finds where the partition goes on, and reads labels from the bucket.
	Opening State = "opening"
	// Reading has not reached the end of the partition yet.
	Reading State = "reading"
	// Ready has reached the end. Then queries may rely on the partition, also if it falls back later.
	Ready State = "ready"
	// Leaving has let the partition go, and answers queries until its next owner has shipped.
	Leaving State = "leaving"
	// Waiting is for partitions of the epoch before that are not closed.
	Waiting State = "waiting"
	// Closed is after the end of the topic: the bucket has all records.
	Closed State = "closed"
	// Stopped waits before it tries again, after an error.
	Stopped State = "stopped"
	// Ended is after Close.
	Ended State = "ended"
)
