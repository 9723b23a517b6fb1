// Package writetest holds fakes of the head and the journal for a write path.
//
// It owns no assertions, and knows no receiver. Only tests import it.
package writetest
