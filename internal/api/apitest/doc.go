// Package apitest tests dialects of the API over a store in memory: by requests in Go, by those in files, and
// by the suite for what the pipeline promises.
//
// It owns the notation of requests and responses. It knows no dialect and no store: each dialect brings its
// routes, and the notation in which its tests load data. It is never part of a running Shale.
package apitest
