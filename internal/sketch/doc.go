// Package sketch counts many things in little memory: how often each of them occurs, and how many different
// ones there are. Both are exact while there are few, and state their error beyond.
//
// It owns no lock, and knows no room.
package sketch
