package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/encrypt"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/location"
	"github.com/shaledb/shale/internal/bucket/rest"
	"github.com/shaledb/shale/internal/model"
)

// Bucket keeps objects in a bucket of S3.
type Bucket struct {
	client *minio.Core
	name   string
	store  rest.Store
	sse    encrypt.ServerSide
	class  string
}

var _ bucket.Bucket = (*Bucket)(nil)

// New returns a bucket. It reads the file with credentials, and sends no request to the store.
func New(l location.Location) (*Bucket, error) {
	transport, err := rest.NewTransport(l.CAFile)
	if err != nil {
		return nil, err
	}
	b := &Bucket{name: l.Name, class: l.StorageClass, store: rest.Store{Bucket: "s3://" + l.Name}}
	host, secure, region := "s3.amazonaws.com", true, l.Region
	if l.Endpoint != "" {
		u, err := url.Parse(l.Endpoint)
		if err != nil {
			return nil, errors.Join(model.ErrInvalid, err)
		}
		host, secure = u.Host, u.Scheme == "https"
		if region == "" {
			region = "us-east-1" // what stores without regions expect in signatures
		}
	}
	options := &minio.Options{
		Secure: secure, Transport: transport, Region: region,
		MaxRetries: 1, // one attempt
	}
	if options.Creds, b.store.Credentials, err = signer(l); err != nil {
		return nil, fmt.Errorf("bucket %s: %w: credentials of %s: %w", b.store.Bucket, model.ErrInvalid, b.store.Credentials, err)
	}
	switch l.Addressing {
	case location.ByPath:
		options.BucketLookup = minio.BucketLookupPath
	case location.ByHost:
		options.BucketLookup = minio.BucketLookupDNS
	}
	switch l.Encryption.Mode {
	case "aes256":
		b.sse = encrypt.NewSSE()
	case "kms":
		if b.sse, err = encrypt.NewSSEKMS(l.Encryption.Key, nil); err != nil {
			return nil, errors.Join(model.ErrInvalid, err)
		}
	}
	if b.client, err = minio.NewCore(host, options); err != nil {
		return nil, errors.Join(model.ErrInvalid, err)
	}
	return b, nil
}

// signer returns the source of credentials, and its name.
func signer(l location.Location) (*credentials.Credentials, string, error) {
	switch {
	case l.Anonymous:
		return credentials.NewStatic("", "", "", credentials.SignatureAnonymous), "nobody (anonymous=1)", nil
	case l.CredentialsFile != "":
		c, err := readKeys(l.CredentialsFile)
		return c, l.CredentialsFile, err
	}
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{},
		&credentials.IAM{Client: &http.Client{Timeout: credentialTime}},
	}), "the environment (AWS_*), the shared credentials file, or the role of the pod, task or machine", nil
}

// readKeys reads a file with keys. The client would send unsigned requests without keys, and would quote a
// line that it does not understand. Errors do not contain what the file holds.
func readKeys(file string) (*credentials.Credentials, error) {
	c := credentials.NewFileAWSCredentials(file, "")
	keys, err := c.GetWithContext(nil)
	var missing *fs.PathError
	switch {
	case errors.As(err, &missing):
		return nil, err
	case err != nil || keys.AccessKeyID == "" || keys.SecretAccessKey == "":
		return nil, errors.New("expected a section [default], or the one that AWS_PROFILE names, with aws_access_key_id and aws_secret_access_key")
	}
	return c, nil
}

func (b *Bucket) fail(ctx context.Context, op, name string, err error) error {
	return b.store.Error(ctx, op, name, refusal(err))
}

// refusal turns a response of S3 into the form of package rest.
func refusal(err error) error {
	var e minio.ErrorResponse
	if !errors.As(err, &e) || e.StatusCode == 0 {
		return err
	}
	r := &rest.Refusal{Status: e.StatusCode, Code: e.Code, Message: e.Message}
	switch e.Code {
	case "NoSuchBucket":
		r.NoBucket = true
	case "SlowDown", "SlowDownRead", "SlowDownWrite", "Throttling", "RequestLimitExceeded":
		r.Status = http.StatusServiceUnavailable
	case "RequestTimeout", "IncompleteBody", "BadDigest", "InternalError", "OperationAborted", "ConditionalRequestConflict":
		r.Again = true
	}
	return r
}

// PutIfAbsent creates an object unless the name is taken.
func (b *Bucket) PutIfAbsent(ctx context.Context, name string, data []byte) (created bool, err error) {
	if err := bucket.CheckName(name); err != nil {
		return false, err
	}
	ctx = rest.Observe(ctx)
	options := b.options(int64(len(data)))
	options.SetMatchETagExcept("*")
	options.DisableContentSha256 = true // the sum is known, so it is sent instead of sums in between the content
	sum := sha256.Sum256(data)
	_, err = b.client.PutObject(ctx, b.name, name, bytes.NewReader(data), int64(len(data)), "", hex.EncodeToString(sum[:]), options)
	var e minio.ErrorResponse
	if errors.As(err, &e) && e.StatusCode == http.StatusPreconditionFailed {
		return false, nil
	}
	if err != nil {
		return false, b.fail(ctx, "put if absent", name, err)
	}
	return true, nil
}

// Get returns a whole object.
func (b *Bucket) Get(ctx context.Context, name string) ([]byte, error) {
	if err := bucket.CheckName(name); err != nil {
		return nil, err
	}
	ctx = rest.Observe(ctx)
	body, _, header, err := b.client.GetObject(ctx, b.name, name, minio.GetObjectOptions{})
	var data []byte
	if err == nil {
		length, e := strconv.ParseInt(header.Get("Content-Length"), 10, 64)
		if e != nil {
			length = -1
		}
		data, err = rest.ReadWhole(body, length)
	}
	if err != nil {
		return nil, b.fail(ctx, "get", name, err)
	}
	return data, nil
}

// GetRange returns n bytes of an object from off.
func (b *Bucket) GetRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	if err := bucket.CheckName(name); err != nil {
		return nil, err
	}
	ctx = rest.Observe(ctx)
	r, err := rest.NewRange(off, n)
	if err != nil {
		return nil, b.fail(ctx, "get range of", name, err)
	}
	var options minio.GetObjectOptions
	options.Set("Range", r.Header())
	body, _, header, err := b.client.GetObject(ctx, b.name, name, options)
	if r.EmptyObject(refusal(err)) {
		return []byte{}, nil
	}
	var data []byte
	if err == nil {
		data, err = r.Read(body, header.Get("Content-Range"))
	}
	if err != nil {
		return nil, b.fail(ctx, "get range of", name, err)
	}
	return data, nil
}

// List calls fn for every object whose name begins with prefix.
func (b *Bucket) List(ctx context.Context, prefix string, fn func(name string, size int64) error) error {
	ctx, cancel := context.WithCancel(rest.Observe(ctx))
	defer cancel()
	if err := ctx.Err(); err != nil {
		return b.fail(ctx, "list", prefix, err)
	}
	for o := range b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if o.Err != nil {
			return b.fail(ctx, "list", prefix, o.Err)
		}
		if bucket.CheckName(o.Key) != nil {
			continue // not made by Shale
		}
		if err := fn(o.Key, o.Size); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil { // the iterator ends without a word
		return b.fail(ctx, "list", prefix, err)
	}
	return nil
}

// Delete removes an object.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	if err := bucket.CheckName(name); err != nil {
		return err
	}
	ctx = rest.Observe(ctx)
	err := b.client.RemoveObject(ctx, b.name, name, minio.RemoveObjectOptions{})
	if err == nil {
		return nil
	}
	if err = b.fail(ctx, "delete", name, err); errors.Is(err, bucket.ErrNotFound) {
		return nil
	}
	return err
}
