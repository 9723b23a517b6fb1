// Package file is the container of parts: pages, the index over them, and the footer, whatever is in the
// pages.
//
// It seals and opens the envelope of a page, keeps an index for each [Section], finds pages by rank, key or
// pair with a [Walk], and writes and reads the footer. It knows sections only by their descriptors: what a
// page means is up to the packages above it.
package file
