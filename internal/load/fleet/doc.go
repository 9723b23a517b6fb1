// Package fleet generates the series of a metrics load: scraped targets with churn and jitter, and Graphite
// agents. It knows names, labels, times and values of every sample, but no encoding of them.
package fleet
