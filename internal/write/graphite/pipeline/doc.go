// Package pipeline does with each Graphite point what the rule files of carbon say, in the order of carbon:
// blacklist and whitelist, rewriting, aggregation, rewriting again, relaying.
//
// What the rules say of a path is the same for all of its points, so it is worked out once and kept,
// within a bound of memory. A point whose path is known costs a lookup, and allocates nothing.
//
// The package owns the rules in force and what is kept of them. The receiver asks it about each point,
// stores what it returns, and never knows a rule.
package pipeline
