// Package function says what a function of Graphite is: a row of a table with a name, a group, parameters,
// a help text and the code; and what it sees of a request.
//
// It owns the types of parameters, with the coercions of graphite-web, and the binding of arguments. The
// families of functions are the packages below it. It never evaluates a target: the evaluator implements
// [Engine].
package function
