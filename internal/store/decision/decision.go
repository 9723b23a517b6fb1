package decision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/catalog/checksum"
)

const version = 1

// record is the object of a request.
type record struct {
	Version int    `json:"version"`
	Request string `json:"request"`
	// Fences are the places of the order in all journals. None: the request was given up.
	Fences []fence `json:"fences,omitempty"`
}

type fence struct {
	Node  string `json:"node"`
	Epoch uint64 `json:"epoch"`
	Seq   uint64 `json:"seq"`
}

func objectName(request string) string { return catalog.DecisionPrefix + request + ".json" }

// Take decides that a request is carried out with the fences, or, without any, that it is given up, unless
// that is decided. It returns the fences that were decided. After an error nothing is known; repeat it.
func Take(ctx context.Context, b bucket.Bucket, request string, fences []catalog.Fence) ([]catalog.Fence, error) {
	r := record{Version: version, Request: request}
	for _, f := range fences {
		r.Fences = append(r.Fences, fence(f))
	}
	name := objectName(request)
	body, err := json.Marshal(&r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %v", name, model.ErrInvalid, err)
	}
	// The answer may be lost, also between the store and its client, which repeats requests. So the object
	// alone says what was decided.
	if _, err := b.PutIfAbsent(ctx, name, checksum.Seal(append(body, '\n'))); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	decided, known, err := Read(ctx, b, request)
	if err == nil && !known {
		err = fmt.Errorf("%s: %w: %w", name, model.ErrTransient, bucket.ErrNotFound)
	}
	return decided, err
}

// Read returns the fences that were decided, none if the request was given up. known is false if nothing was
// decided.
func Read(ctx context.Context, b bucket.Bucket, request string) (fences []catalog.Fence, known bool, err error) {
	name := objectName(request)
	data, err := b.Get(ctx, name)
	if errors.Is(err, bucket.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", name, err)
	}
	body, err := checksum.Unseal(data)
	var r record
	if err == nil {
		err = json.Unmarshal(body, &r)
	}
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("%s: %w: %v", name, model.ErrCorrupt, err)
	case r.Version != version || r.Request != request:
		return nil, false, fmt.Errorf("%s: %w: version %d of request %q", name, model.ErrInvalid, r.Version, r.Request)
	}
	for _, f := range r.Fences {
		fences = append(fences, catalog.Fence(f))
	}
	return fences, true, nil
}
