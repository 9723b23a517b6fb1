// Package pattern matches and replaces with the regular expressions of Python that Graphite's functions and
// policies take.
//
// It owns the choice of the engine: RE2, whose time is linear, wherever it gives Python's result, and
// otherwise a backtracking engine with a time limit. It owns the templates of replacements: \1, \g<1>,
// \g<name>.
package pattern
