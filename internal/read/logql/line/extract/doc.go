// Package extract finds a few fields in lines of JSON or logfmt, and passes over all others.
//
// It finds what the parsers of package line find, in lines that are plain: without escapes or invalid
// characters in a field, and without anything malformed before the last field that is needed. It gives up on
// all others, so that it never decides what is wrong with a line.
//
// It knows neither labels nor stages, and has no errors.
package extract
