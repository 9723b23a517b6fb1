// Package victorialogstest stores data sets in a running VictoriaLogs and makes sources over it, for tests
// that compare it with other stores of the same lines.
package victorialogstest
