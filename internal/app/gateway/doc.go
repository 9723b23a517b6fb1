// Package gateway takes writes to Kafka, for processes with the role gateway.
//
// A [Gateway] is a write path whose series are known to an announcer and whose journal is a topic. It keeps
// nothing on disk, and knows no other gateway: each grants a tenant its part of the limits on rates.
package gateway
