// Package watch finds out which lines of another server have changed, and where some may be there twice, by
// counting them in windows of time.
package watch
