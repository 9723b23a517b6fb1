// Package families keeps what senders say of metric families (type, help and unit) in the bucket, for
// processes that have no head.
//
// Each [Writer], one in a gateway, has an object of its own with all that it knows; a [Reader], one in a
// process that queries, merges all objects. The later description of a family wins, as in a head. An object
// is never replaced: its successor has the next number, so that a listing shows what has changed.
//
// Nothing depends on a writer that is gone: another one takes over what its object has, writes that, and then
// deletes the object. What a writer was told and had not written when it was killed is lost until senders
// repeat it, which they do within minutes or an hour.
package families
