// Package query answers requests from what the head holds: it joins the series of the label store with the
// rows or lines of local parts and sealed runs, in the order of keys.
//
// A query holds no lock. Its [View] holds references to parts and runs, which [Source] takes through [Pinner]
// and releases when the cursor is closed. The package changes nothing.
package query
