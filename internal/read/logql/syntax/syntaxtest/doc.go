// Package syntaxtest makes LogQL queries, right and wrong ones, and keeps what Loki says of them in a file,
// for the tests of package syntax here and next to Loki itself.
package syntaxtest
