package gcs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"cloud.google.com/go/auth"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/location"
	"github.com/shaledb/shale/internal/bucket/rest"
	"github.com/shaledb/shale/internal/model"
)

// Bucket keeps objects in a bucket of Google Cloud Storage.
type Bucket struct {
	client   *http.Client
	tokens   auth.TokenProvider // nil: anonymous
	endpoint string
	name     string
	store    rest.Store
	key      string // of Cloud KMS
	class    string
}

var _ bucket.Bucket = (*Bucket)(nil)

// New returns a bucket. It looks for credentials.
func New(l location.Location) (*Bucket, error) {
	transport, err := rest.NewTransport(l.CAFile)
	if err != nil {
		return nil, err
	}
	b := &Bucket{
		client: &http.Client{Transport: transport}, endpoint: l.Endpoint, name: l.Name,
		store: rest.Store{Bucket: "gs://" + l.Name}, key: l.Encryption.Key, class: l.StorageClass,
	}
	if b.endpoint == "" {
		b.endpoint = "https://storage.googleapis.com"
	}
	if b.tokens, b.store.Credentials, err = tokens(l, b.client); err != nil {
		return nil, fmt.Errorf("bucket %s: %w: credentials of %s: %w", b.store.Bucket, model.ErrInvalid, b.store.Credentials, err)
	}
	return b, nil
}

// objectURL returns the URL of an object.
func (b *Bucket) objectURL(name string) string {
	return b.endpoint + "/storage/v1/b/" + b.name + "/o/" + url.PathEscape(name)
}

// request sends a request and returns a successful response, whose body the caller closes.
func (b *Bucket) request(ctx context.Context, method, to string, header http.Header, body io.Reader, size int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, to, body)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.ContentLength = size
	// Without this the store may decompress what it takes for compressed.
	req.Header.Set("Accept-Encoding", "identity")
	if b.tokens != nil {
		token, err := b.tokens.Token(ctx)
		if err != nil {
			return nil, tokenError(err)
		}
		req.Header.Set("Authorization", "Bearer "+token.Value)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		return nil, refusal(resp)
	}
	return resp, nil
}

// refusal reads a response that is not a success: JSON, or plain text for the content of an object.
func refusal(resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	r := &rest.Refusal{Status: resp.StatusCode, Message: strings.TrimSpace(string(text))}
	var parsed struct {
		Error struct {
			Message string
			Errors  []struct{ Reason string }
		}
	}
	if json.Unmarshal(text, &parsed) == nil && parsed.Error.Message != "" {
		r.Message = parsed.Error.Message
		if len(parsed.Error.Errors) > 0 {
			r.Code = parsed.Error.Errors[0].Reason
		}
	}
	r.NoBucket = r.Status == http.StatusNotFound && strings.Contains(r.Message, "bucket does not exist")
	return r
}

// noBucket says that a refused list or upload means a missing bucket, if it says that something is missing.
func noBucket(err error) error {
	var r *rest.Refusal
	if errors.As(err, &r) && r.Status == http.StatusNotFound {
		r.NoBucket = true
	}
	return err
}

func (b *Bucket) fail(ctx context.Context, op, name string, err error) error {
	return b.store.Error(ctx, op, name, err)
}

// Get returns a whole object.
func (b *Bucket) Get(ctx context.Context, name string) ([]byte, error) {
	if err := bucket.CheckName(name); err != nil {
		return nil, err
	}
	ctx = rest.Observe(ctx)
	resp, err := b.request(ctx, http.MethodGet, b.objectURL(name)+"?alt=media", nil, nil, 0)
	var data []byte
	if err == nil {
		data, err = rest.ReadWhole(resp.Body, resp.ContentLength)
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
	resp, err := b.request(ctx, http.MethodGet, b.objectURL(name)+"?alt=media", http.Header{"Range": {r.Header()}}, nil, 0)
	if r.EmptyObject(err) {
		return []byte{}, nil
	}
	var data []byte
	if err == nil {
		data, err = r.Read(resp.Body, resp.Header.Get("Content-Range"))
	}
	if err != nil {
		return nil, b.fail(ctx, "get range of", name, err)
	}
	return data, nil
}

// listed is a page of a list.
type listed struct {
	NextPageToken string
	Items         []struct {
		Name string
		Size string // a number: JSON of 64 bits
	}
}

// List calls fn for every object whose name begins with prefix.
func (b *Bucket) List(ctx context.Context, prefix string, fn func(name string, size int64) error) error {
	ctx = rest.Observe(ctx)
	query := url.Values{"fields": {"nextPageToken,items(name,size)"}}
	if prefix != "" {
		query.Set("prefix", prefix)
	}
	for {
		page, err := b.page(ctx, query)
		if err != nil {
			return b.fail(ctx, "list", prefix, err)
		}
		for _, item := range page.Items {
			size, err := strconv.ParseInt(item.Size, 10, 64)
			if err != nil {
				return b.fail(ctx, "list", prefix, fmt.Errorf("%w: %s has the size %q", model.ErrInvalid, item.Name, item.Size))
			}
			if bucket.CheckName(item.Name) != nil {
				continue // not made by Shale
			}
			if err := fn(item.Name, size); err != nil {
				return err
			}
		}
		if page.NextPageToken == "" {
			return nil
		}
		query.Set("pageToken", page.NextPageToken)
	}
}

func (b *Bucket) page(ctx context.Context, query url.Values) (page listed, err error) {
	resp, err := b.request(ctx, http.MethodGet, b.endpoint+"/storage/v1/b/"+b.name+"/o?"+query.Encode(), nil, nil, 0)
	if err != nil {
		return page, noBucket(err)
	}
	defer resp.Body.Close()
	return page, json.NewDecoder(resp.Body).Decode(&page)
}

// Delete removes an object.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	if err := bucket.CheckName(name); err != nil {
		return err
	}
	ctx = rest.Observe(ctx)
	resp, err := b.request(ctx, http.MethodDelete, b.objectURL(name), nil, nil, 0)
	if err == nil {
		return resp.Body.Close()
	}
	if err = b.fail(ctx, "delete", name, err); errors.Is(err, bucket.ErrNotFound) {
		return nil
	}
	return err
}
