package azure

import (
	"encoding/base64"
	"errors"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/shaledb/shale/internal/bucket/location"
)

// connect returns the client of a container, and the name of its source of credentials. Errors never contain
// what the file holds.
func connect(l location.Location, options azcore.ClientOptions) (*container.Client, string, error) {
	endpoint := l.Endpoint
	if endpoint == "" {
		endpoint = "https://" + l.Account + ".blob.core.windows.net"
	}
	to := endpoint + "/" + l.Name
	o := &container.ClientOptions{ClientOptions: options}
	switch {
	case l.Anonymous:
		c, err := container.NewClientWithNoCredential(to, o)
		return c, "nobody (anonymous=1)", err
	case l.CredentialsFile != "":
		c, err := connectByFile(l, to, o)
		return c, l.CredentialsFile, err
	}
	const chain = "the environment (AZURE_*), the workload or managed identity, or the Azure CLI"
	// The requests for tokens have the usual retries: they are seldom, and outside the budget of the bucket.
	identity := azcore.ClientOptions{Transport: options.Transport}
	found, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: identity})
	if err != nil {
		return nil, chain, err
	}
	c, err := container.NewClient(to, found, o)
	return c, chain, err
}

// connectByFile reads a file with a connection string, a shared access signature, or the key of the account.
func connectByFile(l location.Location, to string, o *container.ClientOptions) (*container.Client, error) {
	raw, err := os.ReadFile(l.CredentialsFile)
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(string(raw))
	switch {
	case strings.Contains(text, "AccountName="):
		c, err := container.NewClientFromConnectionString(text, l.Name, o)
		if err != nil {
			return nil, errors.New("the connection string is not complete")
		}
		return c, nil
	case strings.Contains(text, "sig="):
		c, err := container.NewClientWithNoCredential(to+"?"+strings.TrimPrefix(text, "?"), o)
		if err != nil {
			return nil, errors.New("the shared access signature cannot be read")
		}
		return c, nil
	}
	if _, err := base64.StdEncoding.DecodeString(text); err != nil || text == "" {
		return nil, errors.New("expected a connection string (AccountName=...), a shared access signature (sig=...) or the key of the account (base64)")
	}
	if l.Account == "" {
		return nil, errors.New("the key of an account needs the parameter account")
	}
	key, err := container.NewSharedKeyCredential(l.Account, text)
	if err != nil {
		return nil, err
	}
	return container.NewClientWithSharedKeyCredential(to, key, o)
}
