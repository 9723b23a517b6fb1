//go:build torture

package promql_test

// mixedQueries is how many queries TestMixedQueries compares.
const mixedQueries = 10_000
