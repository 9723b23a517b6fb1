// Package parttest holds what the tests of several rooms of part need. It is used by tests only.
package parttest
