package graphitetest

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
)

// Record is a request with graphite-web's response.
type Record struct {
	Query  string
	Answer Answer
}

// Save writes records to a compressed file.
func Save(path string, all []Record) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	z, _ := gzip.NewWriterLevel(f, gzip.BestCompression)
	e := json.NewEncoder(z)
	for i := range all {
		if err := e.Encode(&all[i]); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(z.Close(), f.Close())
}

// Load reads what Save wrote.
func Load(path string) (all []Record, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(z); ; {
		var r Record
		switch err := d.Decode(&r); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, r)
	}
}
