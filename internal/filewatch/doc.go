// Package filewatch notices when files change, appear or vanish, by looking at them now and then. What they
// hold is for others.
package filewatch
