// Package jsonscan finds the values of JSON where they lie, without decoding them.
//
// Functions take a text and an index in it. They check only what they need to find the end of a value, as
// Loki does. Callers have the errors and the grammar around values, which differ from protocol to protocol.
package jsonscan
