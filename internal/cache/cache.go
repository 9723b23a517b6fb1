package cache

import "context"

// Tier is one tier of the cache. It is safe for concurrent use.
//
// Values are immutable: neither the tier nor its callers change one, and a key has the same value for as long
// as its object exists. A tier may lose any value at any time. A value costs its length and that of its key,
// plus what the tier needs to find it; the tier keeps the sum within its limit in bytes.
type Tier interface {
	// Get returns the value of a key, from the tier or else from load, and whether load was not needed. Of
	// callers that want the same key at the same time, one runs load with its own context and the others wait
	// for it.
	//
	// An error of load goes to all that wait and is not kept. A context that ends is different: it ends only
	// the caller that it belongs to. So does an error of class limit, which is about the query that loads. If
	// one of them ends the load, another caller loads instead. A load that panics gives the callers that wait
	// an error of class transient.
	Get(ctx context.Context, k Key, load func(context.Context) ([]byte, error)) (value []byte, hit bool, err error)
	// Peek returns a value if the tier has it, which counts as a use. It does not wait: a tier on another
	// machine returns false.
	Peek(k Key) ([]byte, bool)
	// Has reports whether Peek would return a value, without using it.
	Has(k Key) bool
	// Close gives up what the tier holds. It must not be used after that.
	Close() error
}
