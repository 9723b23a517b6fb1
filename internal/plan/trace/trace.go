package trace

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// Request is one request of a trace.
type Request struct {
	At    int64  // milliseconds since the first request
	Key   uint32 // an index of Trace.Sizes
	Query uint32 // requests of one query have the same number
	Age   int32  // seconds between the data and the request; negative if unknown
	// Write says that the data was just produced and is not asked for.
	Write bool
	// First says that no earlier request of the query has asked for the key.
	First bool
}

// Trace is a list of requests in the order of time.
type Trace struct {
	Name     string
	Requests []Request
	// Sizes has the bytes of each key: the most that any of its requests gives.
	Sizes []uint32
	// WarmUp is the time from which requests count, in milliseconds since the first one. Earlier ones fill
	// the caches.
	WarmUp int64
	// Scale is how many times as much data and requests the real system has.
	Scale float64
}

// UnknownAge is the age of data in traces that do not give one.
const UnknownAge = -1

// Summary describes the requests of a trace that count.
type Summary struct {
	Requests int `json:"requests"`
	Keys     int `json:"keys"`
	// Footprint is the sum of the sizes of all keys.
	Footprint int64 `json:"footprint_bytes"`
	// Hours is the time that is measured.
	Hours    float64 `json:"hours"`
	Reads    int64   `json:"reads"`
	First    int64   `json:"first_reads"`
	ReadSize int64   `json:"read_bytes"`
	// Produced is the bytes that are written a day.
	Produced float64 `json:"produced_bytes_per_day"`
}

// Summarize returns the summary of the trace.
func (t *Trace) Summarize() Summary {
	s := Summary{Requests: len(t.Requests), Keys: len(t.Sizes)}
	for _, size := range t.Sizes {
		s.Footprint += int64(size)
	}
	written := 0.0
	for _, r := range t.Requests {
		switch {
		case r.At < t.WarmUp:
		case r.Write:
			written += float64(t.Sizes[r.Key])
		default:
			s.Reads++
			s.ReadSize += int64(t.Sizes[r.Key])
			if r.First {
				s.First++
			}
		}
	}
	s.Hours = t.Hours()
	if s.Hours > 0 {
		s.Produced = written / s.Hours * 24
	}
	return s
}

// Hours returns the time that is measured: from the end of the warm-up to the last request.
func (t *Trace) Hours() float64 {
	if len(t.Requests) == 0 {
		return 0
	}
	return float64(max(t.Requests[len(t.Requests)-1].At-t.WarmUp, 0)) / 3_600_000
}

// Young returns the share of the bytes read, by first requests of queries, that are younger than a time in
// seconds. ok is false if the trace gives no ages.
func (t *Trace) Young(seconds int32) (share float64, ok bool) {
	young, all := 0.0, 0.0
	for _, r := range t.Requests {
		if r.Write || r.At < t.WarmUp || !r.First || r.Age < 0 {
			continue
		}
		size := float64(t.Sizes[r.Key])
		all += size
		if r.Age < seconds {
			young += size
		}
	}
	if all == 0 {
		return 0, false
	}
	return young / all, true
}

// Limits bound what is read of a file.
type Limits struct {
	// Requests is the maximum number of requests to keep. Each takes 24 bytes.
	Requests int
	// Sample is the share of the keys to keep, above 0 and at most 1.
	Sample float64
}

// builder collects the requests of a file.
type builder struct {
	limits Limits
	trace  *Trace
	keys   map[uint64]uint32
	// asked is the last query of each key, plus 1.
	asked       []uint32
	begun       bool
	start, last int64
}

func newBuilder(name string, l Limits) *builder {
	return &builder{limits: l, trace: &Trace{Name: name, Scale: 1 / l.Sample}, keys: make(map[uint64]uint32)}
}

// add appends a request. At is in milliseconds since any moment, and key is a hash.
func (b *builder) add(at int64, key uint64, size uint32, query uint32, age int32, write bool) error {
	if !b.begun {
		b.begun, b.start, b.last = true, at, at
	}
	if at < b.last {
		return fmt.Errorf("%w: expected requests in the order of time, got one that is %d ms before the previous one", model.ErrInvalid, b.last-at)
	}
	b.last = at
	at -= b.start
	if b.limits.Sample < 1 && float64(spread(key)>>11)/(1<<53) >= b.limits.Sample {
		return nil
	}
	if len(b.trace.Requests) >= b.limits.Requests {
		return fmt.Errorf("%w: the trace has more than %d requests; raise --max-requests, or keep a share of its keys with --sample", model.ErrLimit, b.limits.Requests)
	}
	id, known := b.keys[key]
	if !known {
		id = uint32(len(b.trace.Sizes))
		b.keys[key] = id
		b.trace.Sizes = append(b.trace.Sizes, size)
		b.asked = append(b.asked, 0)
	}
	b.trace.Sizes[id] = max(b.trace.Sizes[id], size)
	first := !write && b.asked[id] != query+1
	if !write {
		b.asked[id] = query + 1
	}
	b.trace.Requests = append(b.trace.Requests, Request{At: at, Key: id, Query: query, Age: age, Write: write, First: first})
	return nil
}

// spread makes a hash of a key, so that a sample of keys is random even if keys are numbers in a row.
func spread(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
