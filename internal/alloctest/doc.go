// Package alloctest holds code to its allocation budget in tests, and measures the processor time of
// benchmarks. Only tests use it.
package alloctest
