package objectstores

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/shaledb/shale/internal/bucket/location"
)

// makeBucket makes the bucket of a location, which Shale itself never does.
func makeBucket(l location.Location) error {
	ctx := context.Background()
	switch l.Kind {
	case location.S3:
		u, err := url.Parse(l.Endpoint)
		if err != nil {
			return err
		}
		c, err := minio.New(u.Host, &minio.Options{Creds: credentials.NewFileAWSCredentials(l.CredentialsFile, ""), BucketLookup: minio.BucketLookupPath})
		if err != nil {
			return err
		}
		return c.MakeBucket(ctx, l.Name, minio.MakeBucketOptions{})
	case location.Azure:
		key, err := container.NewSharedKeyCredential(azuriteAccount, azuriteKey)
		if err != nil {
			return err
		}
		c, err := container.NewClientWithSharedKeyCredential(l.Endpoint+"/"+l.Name, key, nil)
		if err != nil {
			return err
		}
		_, err = c.Create(ctx, nil)
		return err
	default:
		resp, err := http.Post(l.Endpoint+"/storage/v1/b", "application/json", bytes.NewReader([]byte(fmt.Sprintf("{%q:%q}", "name", l.Name))))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("status %s", resp.Status)
		}
		return nil
	}
}
