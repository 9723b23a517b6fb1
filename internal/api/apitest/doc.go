// Package apitest asks a dialect of the API over a store in memory, by requests of Go and by those of files.
//
// It owns how a request is written down and how an answer is shown. It knows no dialect and no store: each dialect brings
// its routes, and the words in which its tests say what is stored. It is never part of a running Shale.
package apitest
