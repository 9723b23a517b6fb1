// Package column holds the codecs of columns of numbers: bytes in, bytes out.
//
// A column of integers is constant, repeats, steps or packed bits, whichever is shortest; a segment of
// float64 values is decimals, decimals with exceptions, near decimals, bits, xor or raw. All are exact.
// [Scan] reads the fields of a payload. The package knows nothing about pages, series or files.
package column
