package part

import (
	"context"

	"github.com/shaledb/shale/internal/store/part/file"
)

// VerifyPages reads every byte of the part and verifies the checksums of all pages, and that header, pages
// and footer fill the file. Unlike [Check] it does not look at rows, so it costs little more than reading. A
// file that differs from what its writer wrote is an error of class corrupt.
func VerifyPages(ctx context.Context, r *Reader) error {
	c := newChecker(ctx, r)
	pages, err := c.layout()
	if err != nil {
		return err
	}
	for _, a := range pages {
		stored, err := r.Read(ctx, a.Off, int64(a.Len))
		if err == nil {
			err = file.VerifyPage(stored)
		}
		if err != nil {
			return file.AtPage(a, err)
		}
	}
	return nil
}
