// Package peer answers the query processes of the same installation: it hands out what the heads of this
// process hold and have not shipped, as frames of package wire.
//
// It owns the bounds of what others may ask at once, and the sessions whose pages stay readable. It does not
// parse query languages, merge with the bucket or decide about gaps: the asking side does.
package peer
