// Package plan lays out a metric query and evaluates it. A [Plan] is made once from the syntax tree. Its
// leaves are range aggregations, which read lines; its other nodes are operations of package vector. Equal
// subtrees are one node, so that a leaf that occurs twice is read once.
//
// The value of a leaf is named by an [Extent]: its canonical text and the steps. Whatever has that name has
// that value, as long as the lines do not change. This is the seam for a cache of results.
//
// The package decides in which order nodes are evaluated and how long their values are held. It never reads
// lines itself: its caller passes a function that evaluates a leaf.
package plan
