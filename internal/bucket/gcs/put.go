package gcs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/rest"
	"github.com/shaledb/shale/internal/model"
)

// largeBytes is the size of objects from which on a storage class applies. Smaller ones are records, which
// are read and replaced too often for the cheaper classes.
const largeBytes = 128 << 10

// Put creates or replaces an object. One request takes any size, and the object appears at its end.
func (b *Bucket) Put(ctx context.Context, name string, r io.Reader, size int64) error {
	if err := bucket.CheckName(name); err != nil {
		return err
	}
	ctx = rest.Observe(ctx)
	exact, err := bucket.Exactly(r, size)
	if err == nil {
		err = b.upload(ctx, name, exact, size, url.Values{})
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
	err = b.upload(ctx, name, bytes.NewReader(data), int64(len(data)), url.Values{"ifGenerationMatch": {"0"}})
	var r *rest.Refusal
	if errors.As(err, &r) && r.Status == http.StatusPreconditionFailed {
		return false, nil
	}
	if err != nil {
		return false, b.fail(ctx, "put if absent", name, err)
	}
	return true, nil
}

// upload creates an object in one request: metadata, then content.
func (b *Bucket) upload(ctx context.Context, name string, r io.Reader, size int64, query url.Values) error {
	query.Set("uploadType", "multipart")
	query.Set("fields", "size,crc32c")
	if b.key != "" {
		query.Set("kmsKeyName", b.key)
	}
	metadata := map[string]string{"name": name, "contentType": "application/octet-stream"}
	if b.class != "" && size >= largeBytes {
		metadata["storageClass"] = b.class
	}
	head, err := json.Marshal(metadata)
	if err != nil {
		return err
	}
	// Random, so that no content can have it.
	boundary := multipart.NewWriter(io.Discard).Boundary()
	before := "--" + boundary + "\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n" + string(head) +
		"\r\n--" + boundary + "\r\nContent-Type: application/octet-stream\r\n\r\n"
	after := "\r\n--" + boundary + "--\r\n"
	sum := &summingReader{r: r, sum: crc32.New(crc32.MakeTable(crc32.Castagnoli))}
	body := io.MultiReader(bytes.NewReader([]byte(before)), sum, bytes.NewReader([]byte(after)))
	header := http.Header{"Content-Type": {"multipart/related; boundary=" + boundary}}
	resp, err := b.request(ctx, http.MethodPost, b.endpoint+"/upload/storage/v1/b/"+b.name+"/o?"+query.Encode(), header,
		body, int64(len(before)+len(after))+size)
	if err != nil {
		return noBucket(err)
	}
	defer resp.Body.Close()
	var made struct{ Size, Crc32c string }
	if err := json.NewDecoder(resp.Body).Decode(&made); err != nil {
		return err
	}
	if made.Size != strconv.FormatInt(size, 10) || made.Crc32c != "" && made.Crc32c != sum.text() {
		return fmt.Errorf("%w: the store has %s bytes with the CRC-32C %s instead of %d bytes with %s", model.ErrTransient, made.Size, made.Crc32c, size, sum.text())
	}
	return nil
}

// summingReader computes the CRC-32C of what is read.
type summingReader struct {
	r   io.Reader
	sum hash.Hash32
}

func (s *summingReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.sum.Write(p[:n])
	return n, err
}

// text returns the sum as the API writes it.
func (s *summingReader) text() string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, s.sum.Sum32()))
}
