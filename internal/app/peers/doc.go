// Package peers lets queries into other processes of the same Shale: it adds a token to requests, verifies
// the certificates of the others, and passes on how fresh an answer must be.
//
// It does not know what they hold.
package peers
