package model

import "context"

// Class says what a request to the bucket is for. The class and the tenant decide which waiting request is
// sent first.
type Class uint8

// The classes. System is the store itself: ships and the catalogue.
const (
	System Class = iota
	Rule
	Dashboard
	Explore
	Scan
	Compaction
	// Classes is the number of classes.
	Classes
)

// String returns the name of the class in metrics.
func (c Class) String() string {
	return [Classes]string{"system", "rule", "dashboard", "explore", "scan", "compaction"}[c]
}

// Interactive reports whether a person or an alert waits for the request.
func (c Class) Interactive() bool { return c >= Rule && c <= Explore }

// Caller is the party for whom a request to the bucket is made. Its zero value is the store itself.
type Caller struct {
	Tenant string
	Class  Class
}

type callerKey struct{}

// WithCaller returns a context whose requests to the bucket are for c.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller of a context: see [WithCaller].
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
