// Package api holds what the dialects of HTTP below it have in common: the turns of requests, the memory of bodies and
// answers, compression, the pieces of JSON, the statement of cost, and the pages of other origins that may read answers.
//
// It knows no dialect: parameters, envelopes, errors and their status codes belong to the packages below it.
package api
