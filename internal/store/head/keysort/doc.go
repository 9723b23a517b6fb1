// Package keysort orders rows and label sets by the upper half of their keys. It sorts references and never
// moves rows.
package keysort
