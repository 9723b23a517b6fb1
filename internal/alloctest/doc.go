// Package alloctest holds code to its allocation budget in tests, and measures the processor time of benchmarks. It is used by
// tests only.
package alloctest
