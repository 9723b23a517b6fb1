// Package rows holds rows that are in no part yet: the buffer that collects them in the order of arrival, and
// the sealed runs that queries and flushes read.
//
// A run is sorted by (tenant, key, family, time, arrival), immutable and shared. Values other than floats
// (blobs) lie in blocks of their own, which sorting and combining never move. The package owns no lock and
// knows no file.
package rows
