// Package names finds the dotted names of Graphite by globs and by words, among the series that have no label
// but their name.
//
// It owns globs, the index of a part's names, the choice between the index and the sorted dictionary of a
// part, and the limit of names. The index is a tree of nodes in which equal subtrees are stored once: the
// hosts of a fleet share one. It is made of the dictionary when a query needs it, and is kept by the page
// cache like a page. This package never reads a store: sources hand in sets of names.
package names
