// Package pyregexp matches the regular expressions of Python's re module, in which the configuration files of
// carbon and the functions of Graphite are written.
//
// RE2 matches in linear time and is tried first. Patterns that RE2 lacks (lookaround, backreferences) run in
// a backtracking engine, each match with a time limit. The package knows neither files nor names of metrics.
package pyregexp
