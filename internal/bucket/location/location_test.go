package location

import (
	"strings"
	"testing"
)

// accepted are texts with the locations that they name.
var accepted = map[string]Location{
	"":                      {},
	"./shale-data/bucket":   {Dir: "./shale-data/bucket"},
	"/a/b:c":                {Dir: "/a/b:c"},
	"./odd://folder":        {Dir: "./odd://folder"},
	"s3://name":             {Kind: S3, Name: "name"},
	"s3://name/":            {Kind: S3, Name: "name"},
	"s3://my.name-1/a/b_=+": {Kind: S3, Name: "my.name-1", Prefix: "a/b_=+"},
	"s3://name/p/?endpoint=http://127.0.0.1:9000/&path-style=1&region=eu-central-1": {
		Kind: S3, Name: "name", Prefix: "p", Endpoint: "http://127.0.0.1:9000", Addressing: ByPath, Region: "eu-central-1"},
	"s3://name?encryption=aes256&storage-class=STANDARD_IA": {Kind: S3, Name: "name", Encryption: Encryption{Mode: "aes256"}, StorageClass: "STANDARD_IA"},
	"s3://name?encryption=kms:arn:aws:kms:eu:1:key/2&ca-file=/etc/ca.pem&credentials-file=/run/keys": {
		Kind: S3, Name: "name", Encryption: Encryption{"kms", "arn:aws:kms:eu:1:key/2"}, CAFile: "/etc/ca.pem", CredentialsFile: "/run/keys"},
	"gs://my_name/a?anonymous=1": {Kind: GCS, Name: "my_name", Prefix: "a", Anonymous: true},
	"gs://name?encryption=kms:projects/p/locations/l/keyRings/r/cryptoKeys/k&storage-class=NEARLINE": {
		Kind: GCS, Name: "name", Encryption: Encryption{"kms", "projects/p/locations/l/keyRings/r/cryptoKeys/k"}, StorageClass: "NEARLINE"},
	"azblob://name/x?account=shale1&encryption=scope:s1&storage-class=Cool": {
		Kind: Azure, Name: "name", Prefix: "x", Account: "shale1", Encryption: Encryption{"scope", "s1"}, StorageClass: "Cool"},
	"azblob://name?endpoint=http://127.0.0.1:10000/devstoreaccount1": {Kind: Azure, Name: "name", Endpoint: "http://127.0.0.1:10000/devstoreaccount1"},
}

func TestParse(t *testing.T) {
	for text, want := range accepted {
		got, err := Parse(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; not %+v", text, got, err, want)
		}
		if again, err := Parse(got.String()); err != nil || again != want {
			t.Errorf("%s: %s: %+v, %v", text, got, again, err)
		}
	}
}

// The marker stands for a secret: no error may repeat it.
const secret = "Hunter2Hunter2Hunter2"

// refused are texts with what is said about them.
var refused = map[string]string{
	"http://name":                       "begins with s3://, gs:// or azblob://",
	"S3://name":                         "begins with s3://, gs:// or azblob://",
	"s3:name":                           "begins with s3://",
	"s3:/name/x":                        "begins with s3://",
	"gs:":                               "begins with s3://",
	"a\x00b":                            "zero byte",
	"s3://":                             "expected a bucket name",
	"s3:///x":                           "expected a bucket name",
	"s3://ab":                           "expected a bucket name",
	"s3://Name":                         "lower-case",
	"s3://na_me":                        "expected a bucket name",
	"s3://name:443/x":                   "expected a bucket name",
	"azblob://my.name?account=a":        "expected a bucket name",
	"s3://name/a//b":                    "expected a prefix",
	"s3://name/../b":                    "expected a prefix",
	"s3://name/a b":                     "expected a prefix",
	"s3://name/%61":                     "expected a prefix",
	"s3://name#x":                       "fragment",
	"s3://name?region=a#x":              "fragment",
	"s3://key:" + secret + "@name/x":    "must not hold credentials",
	"s3://" + secret + "@name":          "must not hold credentials",
	"s3://name?secret-key=" + secret:    `does not have parameter "secret-key"; it has endpoint, region, path-style`,
	"s3://name?region=a&" + secret:      "does not have this parameter; it has",
	"s3://name?region=%zz" + secret:     "not of the form",
	"s3://name?a;b=" + secret:           "not of the form",
	"s3://name?region=":                 "parameter region is empty",
	"s3://name?region=a&region=b":       "parameter region is given 2 times",
	"s3://name?region=" + secret + "!":  "expected a region",
	"s3://name?account=x":               "does not have parameter",
	"s3://name?path-style=true":         "expected 1",
	"s3://name?anonymous=yes":           "expected 1",
	"s3://name?endpoint=127.0.0.1:9000": "expected a URL such as",
	"s3://name?endpoint=http://u:" + secret + "@h":  "without credentials",
	"s3://name?endpoint=http://h/path":              "without a path",
	"s3://name?endpoint=http://h?x=" + secret:       "without credentials",
	"s3://name?encryption=kms:":                     "expected aes256, kms or kms:KEY",
	"s3://name?encryption=none":                     "expected aes256, kms or kms:KEY",
	"gs://name?encryption=aes256":                   "expected kms:KEY",
	"azblob://name?account=a&encryption=kms:x":      "expected scope:NAME",
	"s3://name?storage-class=GLACIER":               "cannot be read at once",
	"azblob://name?account=a&storage-class=archive": "cannot be read at once",
	"s3://name?storage-class=a%20b":                 "expected the name of a storage class",
	"s3://name?anonymous=1&credentials-file=/x":     "exclude each other",
	"azblob://name":                                 "needs the parameter account",
	"azblob://name?account=a.b":                     "name of a storage account",
}

func TestParseRefuses(t *testing.T) {
	for text, want := range refused {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; not %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%q: the error has the secret: %v", text, err)
		}
	}
}

// FuzzParse parses texts. What is accepted survives a round trip; an error repeats nothing but names of
// parameters.
func FuzzParse(f *testing.F) {
	for text := range accepted {
		f.Add(text)
	}
	for text := range refused {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Parse(text)
		if err != nil {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		again, err := Parse(l.String())
		if err != nil || again != l {
			t.Errorf("%q: %+v became %q, and that %+v, %v", text, l, l.String(), again, err)
		}
	})
}
