// Package azure keeps a bucket in a container of Azure Blob Storage.
//
// It owns the requests of that API and the words of its refusals, over Azure's own client. It never repeats a
// request: the wrappers around a bucket do.
package azure
