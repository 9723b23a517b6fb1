package s3

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/rest"
)

const (
	// partBytes is the size of the parts of an upload. Smaller objects take one request.
	partBytes = 16 << 20
	// maxParts stays below the limit of S3, which is 10,000.
	maxParts = 9000
	// largeBytes is the size of objects from which on a storage class applies. The cheaper classes bill smaller
	// objects as if they had this size.
	largeBytes = 128 << 10
	// abortTime bounds the request that removes the parts of a failed upload.
	abortTime = 30 * time.Second
	// credentialTime bounds a request for the credentials of a role.
	credentialTime = 10 * time.Second
)

// options returns the options for an object.
func (b *Bucket) options(size int64) minio.PutObjectOptions {
	o := minio.PutObjectOptions{ServerSideEncryption: b.sse}
	if size >= largeBytes {
		o.StorageClass = b.class
	}
	return o
}

// Put creates or replaces an object.
func (b *Bucket) Put(ctx context.Context, name string, r io.Reader, size int64) error {
	if err := bucket.CheckName(name); err != nil {
		return err
	}
	ctx = rest.Observe(ctx)
	exact, err := bucket.Exactly(r, size)
	if err != nil {
		return b.fail(ctx, "put", name, err)
	}
	part := max(partBytes, (size+maxParts-1)/maxParts)
	switch {
	case size == 0:
		// The client does not read the reader of an empty object.
		if _, err = io.Copy(io.Discard, exact); err == nil {
			_, err = b.client.PutObject(ctx, b.name, name, bytes.NewReader(nil), 0, "", "", b.options(0))
		}
	case size <= part:
		_, err = b.client.PutObject(ctx, b.name, name, exact, size, "", "", b.options(size))
	default:
		err = b.putParts(ctx, name, exact, size, part)
	}
	// The store may have refused the request before the client noticed the failure of the reader.
	if failed := exact.Failed(); failed != nil {
		err = failed
	}
	if err != nil {
		return b.fail(ctx, "put", name, err)
	}
	return nil
}

// putParts uploads an object in parts. The object appears when the last request has named all parts.
func (b *Bucket) putParts(ctx context.Context, name string, r io.Reader, size, part int64) error {
	options := b.options(size)
	id, err := b.client.NewMultipartUpload(ctx, b.name, name, options)
	if err != nil {
		return err
	}
	var done []minio.CompletePart
	for off := int64(0); off < size && err == nil; off += part {
		n := min(part, size-off)
		var p minio.ObjectPart
		if p, err = b.client.PutObjectPart(ctx, b.name, name, id, len(done)+1, io.LimitReader(r, n), n, minio.PutObjectPartOptions{}); err == nil {
			done = append(done, minio.CompletePart{PartNumber: p.PartNumber, ETag: p.ETag})
		}
	}
	if err == nil {
		_, err = b.client.CompleteMultipartUpload(ctx, b.name, name, id, done, minio.PutObjectOptions{})
	}
	if err == nil {
		return nil
	}
	// Also if ctx is done: parts that are left are billed. A rule of the bucket removes what a crash leaves.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTime)
	defer cancel()
	_ = b.client.AbortMultipartUpload(ctx, b.name, name, id) // the first error is the cause
	return err
}

// Unfinished calls fn for every upload in parts that was neither finished nor aborted, and whose name begins
// with prefix.
func (b *Bucket) Unfinished(ctx context.Context, prefix string, fn func(name string, begun time.Time)) error {
	ctx, cancel := context.WithCancel(rest.Observe(ctx))
	defer cancel()
	for u := range b.client.ListIncompleteUploads(ctx, b.name, prefix, true) {
		if u.Err != nil {
			return b.fail(ctx, "list unfinished uploads of", prefix, u.Err)
		}
		fn(u.Key, u.Initiated)
	}
	return nil
}
