// Package fleet generates the series of a metrics load: scraped targets with churn and jitter, and Graphite
// agents. It knows names, labels, times and values of every sample, and nothing of the bytes that carry them.
package fleet
