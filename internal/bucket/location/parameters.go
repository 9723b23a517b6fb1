package location

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// parameter is a parameter of bucket URLs.
type parameter struct {
	name  string
	kinds []Kind
	set   func(l *Location, value string) error
	// text returns the value; empty: the parameter is not set.
	text func(l *Location) string
}

// parameters returns all parameters.
func parameters() []parameter {
	field := func(name string, f func(l *Location) *string, kinds ...Kind) parameter {
		return parameter{name, kinds, func(l *Location, value string) error {
			*f(l) = value
			return nil
		}, func(l *Location) string { return *f(l) }}
	}
	endpoint := field("endpoint", func(l *Location) *string { return &l.Endpoint }, S3, GCS, Azure)
	endpoint.set = setEndpoint
	region := field("region", func(l *Location) *string { return &l.Region }, S3)
	region.set = func(l *Location, value string) error {
		l.Region = value
		return checkWord(value, "a region, such as eu-central-1", "-")
	}
	account := field("account", func(l *Location) *string { return &l.Account }, Azure)
	account.set = func(l *Location, value string) error {
		l.Account = value
		return checkWord(value, "the name of a storage account: letters and digits", "")
	}
	class := field("storage-class", func(l *Location) *string { return &l.StorageClass }, S3, GCS, Azure)
	class.set = setClass
	return []parameter{
		endpoint,
		region, account,
		{"path-style", []Kind{S3}, func(l *Location, value string) error {
			if l.Addressing = Addressing(value); l.Addressing != ByPath && l.Addressing != ByHost {
				return errors.New("expected 1 (bucket name in the path) or 0 (in the host name)")
			}
			return nil
		}, func(l *Location) string { return string(l.Addressing) }},
		field("credentials-file", func(l *Location) *string { return &l.CredentialsFile }, S3, GCS, Azure),
		{"anonymous", []Kind{S3, GCS, Azure}, func(l *Location, value string) error {
			if l.Anonymous = value == "1"; !l.Anonymous {
				return errors.New("expected 1")
			}
			return nil
		}, func(l *Location) string {
			if l.Anonymous {
				return "1"
			}
			return ""
		}},
		field("ca-file", func(l *Location) *string { return &l.CAFile }, S3, GCS, Azure),
		{"encryption", []Kind{S3, GCS, Azure}, setEncryption, func(l *Location) string {
			if l.Encryption.Key == "" {
				return l.Encryption.Mode
			}
			return l.Encryption.Mode + ":" + l.Encryption.Key
		}},
		class,
	}
}

// set reads the parameters of a URL.
func (l *Location) set(values url.Values) error {
	var known []string
	for _, p := range parameters() {
		if !slices.Contains(p.kinds, l.Kind) {
			continue
		}
		known = append(known, p.name)
		given, ok := values[p.name]
		delete(values, p.name)
		switch {
		case !ok:
			continue
		case len(given) > 1:
			return fmt.Errorf("parameter %s is given %d times", p.name, len(given))
		case given[0] == "":
			return fmt.Errorf("parameter %s is empty", p.name)
		}
		if err := p.set(l, given[0]); err != nil {
			return fmt.Errorf("parameter %s: %w", p.name, err)
		}
	}
	if len(values) > 0 {
		what, name := "this parameter", slices.Min(slices.Collect(maps.Keys(values)))
		if isName(name) && values.Get(name) != "" {
			what = fmt.Sprintf("parameter %q", name)
		}
		return fmt.Errorf("a URL of %s:// does not have %s; it has %s", l.Kind, what, strings.Join(known, ", "))
	}
	switch {
	case l.Anonymous && l.CredentialsFile != "":
		return errors.New("parameters anonymous and credentials-file exclude each other")
	case l.Kind == Azure && l.Account == "" && l.Endpoint == "":
		return errors.New("an azblob:// URL needs the parameter account, or endpoint")
	}
	return nil
}

// isName reports whether a text looks like the name of a parameter. What follows a stray & may be a part of a
// secret.
func isName(text string) bool {
	return len(text) <= 24 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz-_") == ""
}

func setEndpoint(l *Location, value string) error {
	u, err := url.Parse(value)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("expected a URL such as https://objects.example.com:9000")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(value, "?#@"):
		return errors.New("expected a URL without credentials, parameters and fragment")
	case l.Kind == S3 && strings.Trim(u.Path, "/") != "":
		return errors.New("expected a URL without a path")
	}
	l.Endpoint = strings.TrimRight(value, "/")
	return nil
}

func setEncryption(l *Location, value string) error {
	mode, key, hasKey := strings.Cut(value, ":")
	allowed := map[Kind]string{S3: "aes256, kms or kms:KEY", GCS: "kms:KEY", Azure: "scope:NAME"}[l.Kind]
	ok := false
	switch l.Kind {
	case S3:
		ok = mode == "aes256" && !hasKey || mode == "kms" && hasKey == (key != "")
	case GCS:
		ok = mode == "kms" && key != ""
	case Azure:
		ok = mode == "scope" && key != ""
	}
	if !ok {
		return fmt.Errorf("expected %s", allowed)
	}
	l.Encryption = Encryption{Mode: mode, Key: key}
	return nil
}

// setClass refuses classes whose objects cannot be read at once.
func setClass(l *Location, value string) error {
	if err := checkWord(value, "the name of a storage class, such as STANDARD_IA", "_-"); err != nil {
		return err
	}
	frozen := map[Kind][]string{S3: {"GLACIER", "DEEP_ARCHIVE"}, Azure: {"Archive"}}[l.Kind]
	for _, f := range frozen {
		if strings.EqualFold(value, f) {
			return fmt.Errorf("objects of class %s cannot be read at once", f)
		}
	}
	l.StorageClass = value
	return nil
}

// checkWord accepts letters, digits and some others.
func checkWord(value, expected, others string) error {
	for _, c := range value {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune(others, c)) {
			return errors.New("expected " + expected)
		}
	}
	return nil
}
