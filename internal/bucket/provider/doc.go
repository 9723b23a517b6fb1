// Package provider opens the bucket that a location names.
//
// It owns the choice among the stores. It never sends a request.
package provider
