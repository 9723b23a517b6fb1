// Package syntax reads LogQL: it turns the text of a query into a tree of typed nodes, and a tree into text.
//
// It owns the grammar, the texts of the errors, and all checks that need only the query itself. Selectors
// must select something, aggregations must fit what they aggregate, and regular expressions must be valid and
// small enough to be compiled. It never runs a stage and never looks at a line.
//
// The language is exactly that of Loki: what Loki accepts is accepted, what it refuses is refused with its
// text, and a tree prints as Loki prints it. The exceptions are places where Loki is silently wrong:
//
//   - A number that cannot be read (0x10, 1e999) in a label filter is an error; Loki compares with 0 or
//     infinity.
//   - |= "a" or ip("1.2.3.4") or "b" keeps all three; Loki forgets the address.
//   - Text that a tree prints gives the same tree again. Loki rounds sizes (1234KB to 1.2MB) and the value of
//     vector(), leaves out ignoring() before group_left, and prints 0B and group_left ( where it cannot read
//     them; there, the exact text is printed. When it lays a long query out over several lines it loses
//     parentheses of operations, by (), on () and what follows the or of a line filter; they are kept. Only
//     NaN and infinities (1/0), and names of stray characters, have no text that can be read.
//   - Of several errors in one query the first one is reported; Loki may report a later one.
//   - Queries are bounded in depth and in the cost of their regular expressions.
//   - variants(...) of (...), which is switched off in Loki and was removed again, does not exist, and its
//     words are names like others.
package syntax
