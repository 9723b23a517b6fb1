// Package cachetest is the contract of [cache.Tier] as a test suite, which every tier passes.
package cachetest
