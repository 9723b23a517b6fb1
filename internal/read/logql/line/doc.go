// Package line does with one log line what the stages of a LogQL query say: it filters it, takes labels out
// of it, rewrites it and its labels, and says in which of three categories each label of the result is: of
// the stream, of the structured metadata, or parsed.
//
// Compile makes a Pipeline of the stages that package syntax has parsed. A Pipeline never changes and serves
// any number of goroutines; each of them takes a Filter for the line filters that lead the query, which look
// at whole pages, and a Runner for all that follows, which looks at one line at a time. What a line must
// contain to be of interest at all (TextFilter) lets a source leave pages out.
//
// The answers are those of Loki 3.7, to the letter of its errors, except where Loki is silently wrong:
//
//   - Regular expressions mean what they mean in Go. Loki replaces some by strings that are not the same: foo|.* by foo, and those
//     of label filters by strings that may stand anywhere in the value. |= "" or "foo" keeps all lines, too.
//   - A line filter behind decolorize sees what decolorize leaves. Loki runs it before.
//   - A label filter looks at labels when its turn comes. Loki's parsers drop a line at once for a label that any label filter
//     refuses, even if a stage between them would change the label, or the filter comes first. Here they do so only where nothing
//     can tell the difference.
//   - line_format "{{.__error__}}" gives the error. In Loki it gives an empty line, unless there is something else in the
//     template.
//   - No two labels have one name: an error takes the place of a parsed label that is called like it.
//   - A label that label_format makes is a parsed one, also if all labels are then as those of the stream.
//
// A line, an expression or a template cannot take unbounded time or memory: programs of regular expressions,
// the work of templates, the depth of JSON and the labels of a line have limits, whose errors are of class
// model.ErrLimit and name them.
//
// It never parses LogQL, never reads pages, and starts no goroutines.
package line
