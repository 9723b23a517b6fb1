// Package syntax parses targets of Graphite: paths, calls, pipes and templates.
//
// It accepts what the grammar of graphite-web 1.1.10 accepts, and gives it the same meaning. It owns the
// tree and the positions of errors. It knows no function, and never reads a series. Unlike graphite-web, it
// refuses a target with text after its end: there, a lost parenthesis turns a call into a path that matches
// nothing.
package syntax
