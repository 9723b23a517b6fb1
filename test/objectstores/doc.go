// Package objectstores starts real object stores for tests: versitygw (S3), Azurite (Azure) and fake-gcs-
// server (Google).
//
// It owns their processes, ports and folders. The script .ci/stores installs the programs in bin/test. Its
// tests carry the build tag e2e, and run the contract of buckets, the check and the whole program against
// each store.
package objectstores
