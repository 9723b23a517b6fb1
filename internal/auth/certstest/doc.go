// Package certstest makes authorities and certificates for tests. They are real ones, and end within a day.
package certstest
