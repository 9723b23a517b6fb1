package azure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/location"
	"github.com/shaledb/shale/internal/bucket/rest"
	"github.com/shaledb/shale/internal/model"
)

// Bucket keeps objects in a container of Azure Blob Storage.
type Bucket struct {
	client *container.Client
	store  rest.Store
	scope  *blob.CPKScopeInfo
	tier   *blob.AccessTier
}

var _ bucket.Bucket = (*Bucket)(nil)

// New returns a bucket. It sends no request.
func New(l location.Location) (*Bucket, error) {
	transport, err := rest.NewTransport(l.CAFile)
	if err != nil {
		return nil, err
	}
	b := &Bucket{store: rest.Store{Bucket: "azblob://" + l.Name}}
	if l.Encryption.Key != "" {
		b.scope = &blob.CPKScopeInfo{EncryptionScope: &l.Encryption.Key}
	}
	if l.StorageClass != "" {
		tier := blob.AccessTier(l.StorageClass)
		b.tier = &tier
	}
	options := azcore.ClientOptions{
		Transport: &http.Client{Transport: transport},
		Retry:     policy.RetryOptions{MaxRetries: -1}, // one attempt
	}
	if b.client, b.store.Credentials, err = connect(l, options); err != nil {
		return nil, fmt.Errorf("bucket %s: %w: credentials of %s: %w", b.store.Bucket, model.ErrInvalid, b.store.Credentials, err)
	}
	return b, nil
}

func (b *Bucket) fail(ctx context.Context, op, name string, err error) error {
	return b.store.Error(ctx, op, name, refusal(err))
}

// refusal turns a response of Azure into the form of package rest.
func refusal(err error) error {
	var denied *azidentity.AuthenticationFailedError
	if errors.As(err, &denied) && denied.RawResponse != nil && denied.RawResponse.StatusCode/100 == 4 {
		return &rest.Refusal{Status: http.StatusUnauthorized, Code: "no token", Message: denied.Error()}
	}
	var e *azcore.ResponseError
	if !errors.As(err, &e) {
		return err
	}
	r := &rest.Refusal{Status: e.StatusCode, Code: e.ErrorCode}
	switch e.ErrorCode {
	case "ContainerNotFound", "ContainerBeingDeleted", "ContainerDisabled":
		r.NoBucket = true
	}
	return r
}

// taken reports whether a refusal means that the name of an object is taken.
func taken(err error) bool {
	var e *azcore.ResponseError
	return errors.As(err, &e) && (e.StatusCode == http.StatusPreconditionFailed ||
		e.StatusCode == http.StatusConflict && e.ErrorCode == "BlobAlreadyExists")
}

const (
	// partBytes is the size of the blocks of an upload; smaller objects take one request.
	partBytes = 8 << 20
	// maxParts stays below the limit of Azure, which is 50,000.
	maxParts = 45000
	// largeBytes is the size of objects from which on an access tier applies. Smaller ones are records, which
	// are read and replaced too often for the cheaper tiers.
	largeBytes = 128 << 10
)

func (b *Bucket) tierOf(size int64) *blob.AccessTier {
	if size < largeBytes {
		return nil
	}
	return b.tier
}

// Put creates or replaces an object. It appears when the last request has named all its blocks; Azure drops
// blocks that no request names after a week.
func (b *Bucket) Put(ctx context.Context, name string, r io.Reader, size int64) error {
	if err := bucket.CheckName(name); err != nil {
		return err
	}
	ctx = rest.Observe(ctx)
	exact, err := bucket.Exactly(r, size)
	if err == nil {
		_, err = b.client.NewBlockBlobClient(name).UploadStream(ctx, exact, &blockblob.UploadStreamOptions{
			BlockSize: max(partBytes, (size+maxParts-1)/maxParts), Concurrency: 1,
			TransactionalValidation: blob.TransferValidationTypeComputeCRC64(),
			AccessTier:              b.tierOf(size), CPKScopeInfo: b.scope,
		})
		if failed := exact.Failed(); failed != nil {
			err = failed
		}
	}
	if err != nil {
		return b.fail(ctx, "put", name, err)
	}
	return nil
}

// PutIfAbsent creates an object unless the name is taken.
func (b *Bucket) PutIfAbsent(ctx context.Context, name string, data []byte) (created bool, err error) {
	if err := bucket.CheckName(name); err != nil {
		return false, err
	}
	ctx = rest.Observe(ctx)
	never := azcore.ETagAny // no ETag of an object is allowed to exist
	_, err = b.client.NewBlockBlobClient(name).Upload(ctx, streaming.NopCloser(bytes.NewReader(data)), &blockblob.UploadOptions{
		TransactionalValidation: blob.TransferValidationTypeComputeCRC64(),
		Tier:                    b.tierOf(int64(len(data))), CPKScopeInfo: b.scope,
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &never}},
	})
	if taken(err) {
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
	resp, err := b.client.NewBlockBlobClient(name).DownloadStream(ctx, nil)
	var data []byte
	if err == nil {
		length := int64(-1)
		if resp.ContentLength != nil {
			length = *resp.ContentLength
		}
		data, err = rest.ReadWhole(resp.Body, length)
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
	resp, err := b.client.NewBlockBlobClient(name).DownloadStream(ctx, &blob.DownloadStreamOptions{
		Range: blob.HTTPRange{Offset: r.First, Count: r.Last - r.First + 1},
	})
	if r.EmptyObject(refusal(err)) {
		return []byte{}, nil
	}
	var data []byte
	if err == nil {
		contentRange := ""
		if resp.ContentRange != nil {
			contentRange = *resp.ContentRange
		}
		data, err = r.Read(resp.Body, contentRange)
	}
	if err != nil {
		return nil, b.fail(ctx, "get range of", name, err)
	}
	return data, nil
}

// List calls fn for every object whose name begins with prefix.
func (b *Bucket) List(ctx context.Context, prefix string, fn func(name string, size int64) error) error {
	ctx = rest.Observe(ctx)
	pages := b.client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix})
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return b.fail(ctx, "list", prefix, err)
		}
		for _, item := range page.Segment.BlobItems {
			if item.Name == nil || item.Properties == nil || item.Properties.ContentLength == nil {
				return b.fail(ctx, "list", prefix, fmt.Errorf("%w: an entry lacks its name or size", model.ErrInvalid))
			}
			if bucket.CheckName(*item.Name) != nil {
				continue // not made by Shale
			}
			if err := fn(*item.Name, *item.Properties.ContentLength); err != nil {
				return err
			}
		}
	}
	return nil
}

// Delete removes an object.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	if err := bucket.CheckName(name); err != nil {
		return err
	}
	ctx = rest.Observe(ctx)
	_, err := b.client.NewBlockBlobClient(name).Delete(ctx, nil)
	if err == nil {
		return nil
	}
	if err = b.fail(ctx, "delete", name, err); errors.Is(err, bucket.ErrNotFound) {
		return nil
	}
	return err
}
