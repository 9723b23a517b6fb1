// Package recent keeps what was of use lately: values within an amount of memory, rates for guesses, and what
// is not worth trying.
package recent
