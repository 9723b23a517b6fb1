package model

import "context"

// near is a range of an object in the bucket.
type near struct{ off, end int64 }

type nearKey struct{}

// WithNear says that a query which reads a part of an object in the bucket will soon read the rest of a range
// of it. It has no memory for the whole, but whatever reads for several queries may have.
func WithNear(ctx context.Context, off, end int64) context.Context {
	return context.WithValue(ctx, nearKey{}, near{off, end})
}

// NearOf returns what WithNear has said, or an empty range.
func NearOf(ctx context.Context) (off, end int64) {
	n, _ := ctx.Value(nearKey{}).(near)
	return n.off, n.end
}
