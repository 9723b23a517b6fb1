// Package checksum puts a checksum before the JSON of an object of the bucket, and verifies it.
package checksum
