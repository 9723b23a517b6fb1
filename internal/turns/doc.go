// Package turns lets a bounded number of requests run at one time, and others wait for their turn.
//
// It owns the queue, and the rule by which tenants share the turns: one with many requests leaves room for
// those of others. What a request is, how long it waits and what a refusal says is for the callers.
package turns
