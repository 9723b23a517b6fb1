package kafka

import "sync/atomic"

// ends are the offsets after the last records that a topic is known to have, by partition. A topic that was
// made again begins at 0. Brokers before Kafka 4.1 take records by the name of a topic, whichever it is, so
// that an offset which goes back is the first sign of it. It is safe for concurrent use.
type ends []atomic.Int64

// took notes the offset that a record got. It reports false if the partition had gone further before. A
// negative offset says nothing: brokers no longer know where an old record is.
func (e ends) took(partition int32, offset int64) bool {
	if offset < 0 {
		return true
	}
	at := &e[partition]
	for {
		end := at.Load()
		if offset < end {
			return false
		}
		if at.CompareAndSwap(end, offset+1) {
			return true
		}
	}
}

// forget makes any offset the right one.
func (e ends) forget() {
	for i := range e {
		e[i].Store(0)
	}
}
