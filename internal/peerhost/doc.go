// Package peerhost tells hosts apart by their addresses, for receivers that share connections among them.
package peerhost
