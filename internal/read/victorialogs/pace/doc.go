// Package pace lets requests to another server run in turn, fewer at a time while it is slow.
package pace
