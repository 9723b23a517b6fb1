// Package alloctest holds code to its allocation budget in tests. It is used by tests only.
package alloctest
