// Package cardinality answers how many series a tenant has, by metric, label and value; what creates them;
// and which of them no query asks for. It counts what is in the head of this process, or in the rows of a
// day.
package cardinality
