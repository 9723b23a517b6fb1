// Package kafka starts real Kafka servers for tests.
//
// It owns their processes, ports and folders. The script .ci/kafka installs the programs in bin/test/kafka.
// Its tests carry the build tag e2e. They kill a server while it takes writes, let its retention delete what
// is not read, and run the commands of `shale kafka`.
package kafka
