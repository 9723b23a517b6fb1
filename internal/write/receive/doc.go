// Package receive holds what the receivers of HTTP pushes share: admission, reading and decoding a
// body, pushing a batch, the response, and the metrics of requests.
//
// A receiver is a package with one handler. The handler reads the headers, hands the request to
// [Server.Serve] with a function that stores a decoded body, and writes the response in the form of
// its protocol. The package owns the order of these steps: no byte of a body is read before it is
// reserved. It knows no protocol.
package receive
