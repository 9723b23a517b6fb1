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

// Source is the kind of tier that gave a value.
type Source uint8

const (
	// Nowhere: no tier had the value.
	Nowhere Source = iota
	// Disk is a tier on a local disk.
	Disk
	// Shared is a tier on servers that several processes share.
	Shared
)

// Found is what a [Secondary] has for a key. The zero value is a miss.
type Found struct {
	Value []byte
	From  Source
}

// Asker is a query that asks for values.
type Asker struct {
	// Query tells it from other queries: see QueryID of model.Cost.
	Query uint64
	// Tenant is a small number of its tenant, or 0 if the tenant has none. Numbers are those of this process.
	Tenant uint8
}

// Secondary is a tier after memory: a disk, or a server that several processes share. Its values are as the
// bucket has them, so that they take less room, and are decoded after each read. It is safe for concurrent
// use.
//
// A tier may keep only values that a second query wants. Values are immutable, and the tier may share them
// with its callers.
type Secondary interface {
	// Get returns a value, or a miss if the tier does not have it, finds it damaged, or is out of order. It
	// never fails.
	Get(ctx context.Context, k Key, by Asker) Found
	// GetMany is Get for several keys at once, all different, so that a tier on another machine is asked in one
	// round trip. It sets found, which has a zero value for each key, for the keys whose values it has.
	GetMany(ctx context.Context, keys []Key, by Asker, found []Found)
	// Has reports whether Get would return a value, as far as that is known without I/O.
	Has(k Key) bool
	// Offer gives the tier a value that a query has read from the bucket. It does not wait.
	Offer(k Key, by Asker, value []byte)
	// Use tells the tier that a query has found in memory what was made of a value. It does not wait.
	Use(k Key, by Asker)
	// Fresh gives the tier a value of an object that was just written, before a query asks for it. It waits for
	// room until the context ends, and reports whether the tier wants more of the object.
	Fresh(ctx context.Context, k Key, value []byte) bool
	// Close ends the tier, which keeps what it can for the next start. It must not be used after that.
	Close() error
}
