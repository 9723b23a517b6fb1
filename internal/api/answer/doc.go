// Package answer is the cache tier of answers: the final bytes of responses to hot requests.
//
// An [Answer] is the body as it was computed, and the encodings of it that clients have asked for, each made
// once. A [Tier] finds answers by a [Key], which is a hash of everything that a response depends on besides
// the data: the tenants, the endpoint, the parameters and some headers. It gives an answer only while [State]
// says that nothing has changed that it depends on, so it has no time to live.
//
// The package owns the memory of the answers, and bounds it in total and for each tenant. An answer that a
// slow client is still reading counts until the client is done. It never sees a request, and never computes
// an answer.
package answer
