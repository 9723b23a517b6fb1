// Package graphite serves the HTTP API of graphite-web: names, tags, functions and events, with its
// parameters, its JSON and its error texts.
//
// It owns the parameters, the forms of responses and the statuses. It never evaluates a target and never
// reads the store: it calls the engines of its options.
package graphite
