// Package line runs the stages of a LogQL query on one log line: it filters the line, extracts labels, and
// rewrites the line and its labels. Each label of the result has one of three categories: stream, structured
// metadata, or parsed.
//
// Compile makes a Pipeline of the stages that package syntax has parsed. A Pipeline never changes and serves
// any number of goroutines. Each goroutine takes a Filter for the leading line filters, which look at whole
// pages, and a Runner for the later stages, which look at one line at a time. The strings that a line must
// contain (TextFilter) let a source leave pages out.
//
// The results are those of Loki 3.7, including its error texts, except where Loki is silently wrong:
//
//   - Regular expressions mean what they mean in Go. Loki replaces some with strings that are not equivalent:
//     foo|.* with foo, and those of label filters with strings that may stand anywhere in the value. |= "" or
//     "foo" keeps all lines, too.
//   - A line filter after decolorize sees what decolorize leaves. Loki runs it before.
//   - A label filter looks at labels when its turn comes. Loki's parsers drop a line at once for a label that
//     any label filter refuses, even if a stage between them would change the label, or the filter comes
//     first. Here they do so only where nothing can tell the difference.
//   - line_format "{{.__error__}}" gives the error. In Loki it gives an empty line, unless there is something
//     else in the template.
//   - No two labels have one name: an error replaces a parsed label of the same name.
//   - A label that label_format makes is a parsed one, even if the labels then equal those of the stream.
//
// A line, an expression or a template cannot take unbounded time or memory. Programs of regular expressions,
// the work of templates, the depth of JSON and the labels of a line have limits. Their errors are of class
// model.ErrLimit and name the limit.
//
// It never parses LogQL, never reads pages, and starts no goroutines.
package line
