// Package breaker keeps requests from a server that fails, and bounds how often they are sent again.
package breaker
