package location

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/bucket"
)

// Kind is a kind of store.
type Kind string

// The kinds. All except Folder are the schemes of their URLs.
const (
	Folder Kind = ""
	S3     Kind = "s3"
	GCS    Kind = "gs"
	Azure  Kind = "azblob"
)

// Addressing says where a request to S3 has the name of the bucket.
type Addressing string

// The ways of addressing. Auto is by host for the stores that are known to have it, else by path.
const (
	Auto   Addressing = ""
	ByPath Addressing = "1"
	ByHost Addressing = "0"
)

// Location says where a bucket is, and how to reach it. Files are named, never read.
type Location struct {
	Kind Kind
	// Dir is the folder of a bucket of kind Folder. The other fields are for the other kinds.
	Dir string
	// Name is the name of the bucket or container. Names of objects begin with Prefix, if it is not empty,
	// and a slash.
	Name, Prefix string
	// Endpoint is the base URL of the API; empty: the provider's own.
	Endpoint string
	// Region is for S3, Account is the storage account for Azure.
	Region, Account string
	Addressing      Addressing
	// CredentialsFile names a file with credentials; empty: the usual chain of the provider. Anonymous sends
	// none.
	CredentialsFile string
	Anonymous       bool
	// CAFile has the certificates of the authorities to trust; empty: those of the machine.
	CAFile     string
	Encryption Encryption
	// StorageClass is for large objects; empty: the default of the bucket.
	StorageClass string
}

// Encryption is how the store encrypts new objects.
type Encryption struct {
	// Mode is empty for the default of the bucket, or aes256, kms or scope.
	Mode string
	// Key is the name of the key or scope; empty: the store's own key.
	Key string
}

// Parse reads a text. Errors never contain more of it than the names of parameters, because it may hold a
// secret in the wrong place.
func Parse(text string) (Location, error) {
	kind, rest, isURL := cutScheme(text)
	if !isURL {
		if strings.ContainsRune(text, 0) {
			return Location{}, errors.New("a folder cannot have a zero byte in its name")
		}
		return Location{Dir: text}, nil
	}
	if !slices.Contains([]Kind{S3, GCS, Azure}, kind) {
		not := ""
		if kind != "" && isName(string(kind)) {
			not = ", not " + string(kind) + "://"
		}
		return Location{}, errors.New("expected a folder, or a URL that begins with s3://, gs:// or azblob://" + not)
	}
	where, query, _ := strings.Cut(rest, "?")
	switch {
	case strings.Contains(where, "@"):
		return Location{}, errors.New("a bucket URL must not hold credentials; name a file by the parameter credentials-file")
	case strings.Contains(rest, "#"):
		return Location{}, errors.New("a bucket URL must not have a fragment (#)")
	}
	l := Location{Kind: kind}
	l.Name, l.Prefix, _ = strings.Cut(where, "/")
	l.Prefix = strings.TrimSuffix(l.Prefix, "/")
	if err := l.checkNames(); err != nil {
		return Location{}, err
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return Location{}, errors.New("the parameters after ? are not of the form name=value&name=value")
	}
	if err := l.set(values); err != nil {
		return Location{}, err
	}
	return l, nil
}

// cutScheme splits a URL. A text such as s3:name is taken for a URL too, because it is hardly ever the
// name of a folder.
func cutScheme(text string) (kind Kind, rest string, isURL bool) {
	if scheme, rest, ok := strings.Cut(text, "://"); ok && !strings.ContainsAny(scheme, "/.") {
		return Kind(scheme), rest, true
	}
	scheme, _, ok := strings.Cut(text, ":")
	return "", "", ok && slices.Contains([]Kind{S3, GCS, Azure}, Kind(scheme))
}

// maxPrefixBytes leaves room for the names of objects, of which stores allow 1024 bytes.
const maxPrefixBytes = 512

func (l *Location) checkNames() error {
	longest, others := 63, "-."
	switch l.Kind {
	case GCS:
		longest, others = 222, "-._"
	case Azure:
		others = "-"
	}
	valid := len(l.Name) >= 3 && len(l.Name) <= longest
	for _, c := range l.Name {
		valid = valid && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.ContainsRune(others, c))
	}
	if !valid {
		return fmt.Errorf("expected a bucket name of 3 to %d lower-case letters, digits and %q after %s://", longest, others, l.Kind)
	}
	if l.Prefix != "" && (bucket.CheckName(l.Prefix) != nil || len(l.Prefix) > maxPrefixBytes) {
		return fmt.Errorf("expected a prefix of at most %d letters, digits, -_.=+ and single slashes after the bucket name", maxPrefixBytes)
	}
	return nil
}

// String returns a text that Parse reads as the same location.
func (l Location) String() string {
	if l.Kind == Folder {
		return l.Dir
	}
	text := string(l.Kind) + "://" + l.Name
	if l.Prefix != "" {
		text += "/" + l.Prefix
	}
	values := url.Values{}
	for _, p := range parameters() {
		if v := p.text(&l); v != "" {
			values.Set(p.name, v)
		}
	}
	if len(values) > 0 {
		text += "?" + values.Encode()
	}
	return text
}
