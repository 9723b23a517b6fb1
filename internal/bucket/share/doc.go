// Package share wraps a bucket and decides which waiting request is sent next.
//
// It owns the queue of requests that the limits of package pace hold back. Tenants get equal shares of the
// bytes, whatever number of requests each of them has waiting. Within a tenant the classes of requests have
// weights. A request that need not wait costs one lock.
package share
