// Package fronts measures servers that speak Loki's API over one and the same store: each request cold and
// warm, and many clients at a time. It also counts what refreshed pages make them ask the store for.
//
// It owns the requests, the comparison of responses and the tables. It knows servers by their URLs only. The
// first front's responses are what others are compared with: by their lines with times, their names, or
// their points. Each response whose status is not 200 counts as an error.
package fronts
