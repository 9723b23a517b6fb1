// Package retry wraps a bucket and repeats requests that failed for a moment.
//
// It owns the budget of repetitions and the pauses between them. It repeats errors of class transient only,
// and only requests that may be carried out twice. It never repeats PutIfAbsent: after a lost response, only
// the caller can tell its own object from that of another process.
package retry
