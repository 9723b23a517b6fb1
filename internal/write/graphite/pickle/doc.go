// Package pickle decodes the pickles that Graphite clients send: protocols 0 to 5, with nothing but
// lists, tuples, strings and numbers, and dicts where they are asked for.
//
// A pickle is a program for a small stack machine. Python's machine can import modules and call
// functions. This one cannot: its set of opcodes is closed, and every other opcode is an error that
// names it.
//
// The package owns the memory of the decoded values and reuses it for the next pickle. It asks before
// it allocates, so that a small pickle that expands to a huge value meets a limit. It does not copy a
// string that is stored verbatim in the pickle. It never recurses, and it never trusts what a pickle
// says about its own size.
//
// The result is a graph of Values: a list may contain itself. A caller that walks it must bound the
// depth.
package pickle
