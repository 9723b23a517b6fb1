// Package wire walks over protobuf messages in place: tags, lengths, and the offsets of fields. It
// builds no objects, copies nothing, and allocates nothing but its errors. Receivers decide what the
// fields mean.
package wire
