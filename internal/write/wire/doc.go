// Package wire walks over protobuf messages where they lie, without building objects: tags, lengths and the places of
// fields. Receivers decide what the fields mean. It allocates nothing but its errors and copies nothing.
package wire
