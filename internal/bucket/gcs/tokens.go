package gcs

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"

	"github.com/shaledb/shale/internal/bucket/location"
	"github.com/shaledb/shale/internal/bucket/rest"
)

// scope is the right to read and write objects.
const scope = "https://www.googleapis.com/auth/devstorage.read_write"

// tokens returns the source of tokens and its name; nil: none are sent.
func tokens(l location.Location, client *http.Client) (auth.TokenProvider, string, error) {
	options := &credentials.DetectOptions{Scopes: []string{scope}, Client: client}
	switch {
	case l.Anonymous:
		return nil, "nobody (anonymous=1)", nil
	case l.CredentialsFile == "":
		found, err := credentials.DetectDefault(options)
		return found, "the environment (GOOGLE_APPLICATION_CREDENTIALS), gcloud, or the service account of the machine", err
	}
	text, err := os.ReadFile(l.CredentialsFile)
	if err != nil {
		return nil, l.CredentialsFile, err
	}
	var file struct{ Type string }
	if err := json.Unmarshal(text, &file); err != nil || file.Type == "" {
		return nil, l.CredentialsFile, fmt.Errorf("expected JSON with the member type, such as the key of a service account")
	}
	found, err := credentials.NewCredentialsFromJSON(credentials.CredType(file.Type), text, options)
	return found, l.CredentialsFile, err
}

// tokenError turns the refusal of a token into the form of package rest.
func tokenError(err error) error {
	var e *auth.Error
	if errors.As(err, &e) && e.Response != nil && e.Response.StatusCode/100 == 4 {
		return &rest.Refusal{Status: http.StatusUnauthorized, Code: "no token", Message: err.Error()}
	}
	return fmt.Errorf("no token: %w", err)
}
