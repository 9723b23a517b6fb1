// Package metadata holds what senders say about metric families (type, help and unit), and the file that
// carries it over a restart. It is bounded in families and bytes. Senders repeat metadata, so losing
// the file loses no data.
package metadata
