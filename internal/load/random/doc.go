// Package random is the source of randomness of all generators: a hash of a seed and two numbers. It has no
// state, so that any sample can be computed a second time.
package random
