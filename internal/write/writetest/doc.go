// Package writetest is the fakes of the head and the journal under a write path.
//
// It owns no assertions, and knows no receiver. Only tests import it.
package writetest
