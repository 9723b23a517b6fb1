//go:build !slowbucket

package app

import "github.com/shaledb/shale/internal/bucket"

// reached is the bucket as the machine reaches it.
func reached(b bucket.Bucket) bucket.Bucket { return b }
