// Package buckettest is the suite for the contract of package bucket: every bucket and every wrapper runs it.
//
// It owns only the suite. Only tests import it.
package buckettest
