// Command slow is `shale serve` on a machine whose disk or bucket is slow: every sync of a file takes
// --sync-delay longer, every request to the bucket --request-delay. All other flags are settings.
//
// The benchmark and the end-to-end tests start it. The delays are injected here, so that the product holds no
// fault injection.
package main
