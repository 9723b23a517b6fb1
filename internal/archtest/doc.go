// Package archtest tests the rules of the house. It checks which room imports which, package docs, names,
// fuzz seeds, and that settings and exits stay in cmd. It limits the sizes of files, functions and packages,
// and the prose of comments and documents. It checks that documents name files that exist.
//
// It owns the table of arrows (arrows.go) and the ratchets (testdata). A ratchet lists the code that does not
// keep a rule yet; its numbers only fall. No package imports archtest.
package archtest
