// Package nametree holds the tree of the dotted names of one part, in which equal branches are stored once.
// Queries of Graphite find names in it: see package read/graphite/names. Blocks have it as a page: see
// docs/format.md.
package nametree
