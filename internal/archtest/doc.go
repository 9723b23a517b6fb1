// Package archtest holds the rules of the house as tests: which room may import which, one package doc each, the sizes
// of files and functions, names, what may not stand below cmd, and that the docs name files that exist.
//
// It owns the table of arrows. It never runs in the product: nothing imports it.
package archtest
