// Package sketch counts many things in little memory: how often each of them occurs, how many different ones
// there are, and how long they took. Names are exact while there are few; every count states its error.
//
// It owns no lock, and knows no room.
package sketch
