// Package events receives events as graphite-web takes them: POST /events, with JSON.
//
//	{"what": "deploy 7", "tags": ["deploy", "web"], "when": 1700000000, "data": "by anna"}
//
// It turns an event into a line of the stream that package event describes, and responds once the line is
// durable. It never reads events.
package events
