// Package logtest holds what tests need of logs. It is used by tests only.
package logtest
