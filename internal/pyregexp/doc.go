// Package pyregexp matches and replaces with the regular expressions of Python's re module, in which the
// configuration files of carbon and the functions of Graphite are written.
//
// RE2 matches in linear time and is tried first. Patterns that RE2 lacks (lookaround, backreferences) run in
// a backtracking engine, each match with a time limit, and all matches of a pattern of a request with
// another. The package owns the templates of replacements, too: \1, \g<1>, \g<name>. It knows neither files
// nor names of metrics.
package pyregexp
