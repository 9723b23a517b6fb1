// Package response lets Loki's own code read our responses: it decodes those in protobuf, and what it then
// writes as JSON must be our response in JSON. The responses are in testdata of internal/api/loki, whose own
// tests compare.
package response
