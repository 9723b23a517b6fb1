// Package rest is what stores that are reached over HTTP have in common.
//
// It owns the connections, the classes of refusals, and the rules by which a range of bytes is asked for and
// checked. It never knows a store's API: the packages of the stores do.
package rest
