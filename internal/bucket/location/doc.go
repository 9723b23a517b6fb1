// Package location reads the text that names a bucket: a folder, or a URL such as s3://name/prefix.
//
// It owns the schemes, the parameters of each, and their checks. It never opens a bucket, never reads a
// credential, and never repeats a text that may hold one.
package location
