// Package apitest tests dialects of the API over a store in memory: by requests in Go, by those in files, and by the suite
// for what the pipeline promises.
//
// It owns how a request is written down and how an answer is shown. It knows no dialect and no store: each dialect brings
// its routes, and the words in which its tests say what is stored. It is never part of a running Shale.
package apitest
