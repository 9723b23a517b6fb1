// Package linetest has log queries and lines to try stages with, and what became of them: cases that are
// written down, and a generator of more. Tests of package line and the comparison in test/logql-oracle use
// it; it knows neither.
package linetest
