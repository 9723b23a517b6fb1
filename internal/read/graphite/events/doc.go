// Package events finds the events of Graphite, which are lines of the stream that package event describes.
//
// It asks LogQL for the lines whose text may have the wanted tags, and looks at the tags itself. It never
// writes.
package events
