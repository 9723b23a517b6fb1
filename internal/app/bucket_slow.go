//go:build slowbucket

package app

import (
	"time"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/fault"
)

// requestDelay is what every request to the bucket takes longer in a program that is built with the tag slowbucket, to
// see what the way to an object store makes of a folder.
const requestDelay = 20 * time.Millisecond

// reached is the bucket behind a long way.
func reached(b bucket.Bucket) bucket.Bucket {
	return fault.New(b, fault.Rule{Kind: fault.Slow, Delay: requestDelay})
}
