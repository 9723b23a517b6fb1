package head

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// creationLimit bounds how fast new series are created. Known series are never held back.
type creationLimit struct {
	perSecond float64 // 0: no limit
	burst     float64
}

// newCreationLimit allows a burst of a minute's worth, which covers a scrape of all targets.
func newCreationLimit(perSecond int64) creationLimit {
	return creationLimit{float64(perSecond), 60 * float64(perSecond)}
}

// creationLimits are the token buckets of creation.
type creationLimits struct {
	total creationLimit

	mu      sync.Mutex
	all     bucketOfTokens
	tenants map[uint16]*bucketOfTokens
}

// bucketOfTokens fills with time. It is guarded by creationLimits.mu.
type bucketOfTokens struct {
	spent float64 // of the burst
	at    int64   // Unix nanoseconds
}

// left returns the number of tokens, at most as many as a batch has series. More need not fit an int.
func (b *bucketOfTokens) left(l creationLimit, now int64) int {
	if passed := float64(now-b.at) / 1e9; passed > 0 { // a clock that steps back changes nothing
		b.spent = max(0, b.spent-passed*l.perSecond)
	}
	b.at = now
	return int(min(l.burst-b.spent, math.MaxInt32))
}

// take returns how many of n series may be created at the rate of the tenant and of all, and the limit that
// refuses the others.
func (l *creationLimits) take(id uint16, tenant string, perSecond int64, n int, now int64) (int, *model.LimitError) {
	if l.total.perSecond <= 0 && perSecond <= 0 {
		return n, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	allowed := n
	var err *model.LimitError
	var own *bucketOfTokens
	if perSecond > 0 {
		if own = l.tenants[id]; own == nil {
			own = new(bucketOfTokens)
			l.tenants[id] = own
		}
		if left := own.left(newCreationLimit(perSecond), now); left < allowed {
			allowed = max(0, left)
			err = &model.LimitError{Limit: LimitTenantNewSeries, Tenant: true, Text: fmt.Sprintf(
				"refused %d of %d new series: tenant %s may create %d per second; send the request again later", n-allowed, n, tenant, perSecond)}
		}
	}
	if l.total.perSecond > 0 {
		if left := l.all.left(l.total, now); left < allowed {
			allowed = max(0, left)
			err = &model.LimitError{Limit: LimitNewSeries, Text: fmt.Sprintf(
				"refused %d of %d new series: all tenants together may create %g per second; send the request again later", n-allowed, n, l.total.perSecond)}
		}
		l.all.spent += float64(allowed)
	}
	if own != nil {
		own.spent += float64(allowed)
	}
	return allowed, err
}

// tenantSeries returns how many of n series the tenant may have on top of its active ones, and the limit that
// refuses the others.
func (h *Head) tenantSeries(id uint16, tenant string, most int64, n int) (int, *model.LimitError) {
	active, byShare := h.known.OfTenant(id), most <= 0
	if byShare {
		most = h.known.Cap() / 10 * 9
	}
	if active+int64(n) <= most || byShare && h.onlyTenant(id) {
		return n, nil
	}
	allowed := int(max(0, most-active))
	return allowed, &model.LimitError{Limit: LimitTenantSeries, Tenant: true, Text: fmt.Sprintf(
		"refused %d of %d new series: tenant %s has %d active series and may have %d; drop unneeded series or labels, or raise the limit", n-allowed, n, tenant, active, most)}
}

// onlyTenant reports whether no other tenant has series. It then may fill the set: see crowdedKey. The counts
// of series of a tenant and of the set cannot be compared for that, since they change one after the other.
func (h *Head) onlyTenant(id uint16) bool {
	for n := range h.tenants.count() {
		if other := uint16(n); other != id && h.known.OfTenant(other) > 0 {
			return false
		}
	}
	return true
}

// ActiveSeries returns the number of series of a tenant in the known set.
func (h *Head) ActiveSeries(tenant string) int64 {
	id, ok := h.tenants.find(tenant)
	if !ok {
		return 0
	}
	return h.known.OfTenant(id)
}

// ActiveByTenant returns the number of series of each tenant in the known set.
func (h *Head) ActiveByTenant() map[string]int64 {
	all := map[string]int64{}
	for id, name := range h.tenants.all() {
		if n := h.known.OfTenant(uint16(id)); n > 0 {
			all[name] = n
		}
	}
	return all
}

// EachActive calls what is given for tenants as [known.Set.EachKey] does, in one pass over all series.
func (h *Head) EachActive(of map[string]func(lo uint64)) {
	var byID []func(lo uint64)
	for tenant, fn := range of {
		if id, ok := h.tenants.find(tenant); ok {
			byID = append(byID, make([]func(uint64), max(0, int(id)+1-len(byID)))...)
			byID[id] = fn
		}
	}
	if len(byID) > 0 {
		h.known.EachKey(byID)
	}
}

// KnownRebuilt reports whether the known set has been rebuilt since the start. Until then, counts of active
// series lack those that have not been read yet.
func (h *Head) KnownRebuilt() bool { return h.knownRebuilt.Load() }

// applies reports whether Create applies a limit. Series that the known set lacks look like new ones, and
// must not be refused. Where it lacks some since their labels are damaged, a tenant may have as many active
// series as its limit says, but known ones do not wait for a rate.
func (h *Head) applies(limit string) bool {
	return h.knownRebuilt.Load() && (limit == LimitTenantSeries || h.knownComplete.Load())
}

// Active returns what tells whether a series of a tenant is in the known set. While the set is being rebuilt,
// and if not all labels could be read for that, the error is of class transient.
func (h *Head) Active(tenant string, s model.Signal) (func(model.Key) bool, error) {
	switch {
	case !h.knownRebuilt.Load():
		return nil, fmt.Errorf("%w: the known set is being rebuilt", model.ErrTransient)
	case !h.knownComplete.Load():
		return nil, fmt.Errorf("%w: the known set lacks series whose labels could not be read at the start; the log says why", model.ErrTransient)
	}
	id, ok := h.tenants.find(tenant)
	return func(k model.Key) bool { return ok && h.known.Has(id, s, k) }, nil
}

// The limits that [Head.Create] names in its errors.
const (
	// LimitNewSeries bounds creation by all tenants together.
	LimitNewSeries = "limits.new-series"
	// LimitTenantNewSeries bounds creation by each tenant.
	LimitTenantNewSeries = "limits.tenant-new-series"
	// LimitTenantSeries bounds the active series of each tenant.
	LimitTenantSeries = "limits.tenant-series"
	// LimitLabelBuffer is exceeded when labels come faster than the disk takes them.
	LimitLabelBuffer = "memory"
)

// Create asks for the creation of the n new series of a batch. It returns how many of them may be created
// now; the rows of the others must not be appended. If that is fewer than n, the error is a
// [model.LimitError] of class transient that says why. Known series are not affected.
//
// While the known set is being rebuilt, all series are allowed: it is not known yet which ones are new. That
// takes until the labels can be read, if the disk fails.
func (h *Head) Create(tenant string, n int) (int, error) {
	if n == 0 || !h.applies(LimitTenantSeries) {
		return n, nil
	}
	id, err := h.tenants.admit(tenant)
	if err != nil {
		return 0, err
	}
	h.mu.Lock()
	held, full := h.mu.buffers.labelBytes, h.labelsFullLocked()
	h.mu.Unlock()
	if full {
		h.metrics.deferred.WithLabelValues(LimitLabelBuffer).Add(float64(n))
		return 0, &model.LimitError{Limit: LimitLabelBuffer, Text: fmt.Sprintf(
			"refused %d new series: labels that are not in a part yet take %d of %d bytes; send the request again later", n, held, h.o.LabelBytes)}
	}
	limits := h.o.Tenant
	if h.o.TenantLimits != nil {
		limits = h.o.TenantLimits(tenant)
	}
	allowed, limit := h.tenantSeries(id, tenant, limits.Series, n)
	if h.applies(LimitNewSeries) {
		if fast, tooFast := h.limits.take(id, tenant, limits.NewSeries, allowed, h.o.Now()); tooFast != nil {
			allowed, limit = fast, tooFast
		}
	}
	if limit == nil {
		return allowed, nil
	}
	h.metrics.deferred.WithLabelValues(limit.Limit).Add(float64(n - allowed))
	return allowed, limit
}

// labelsFullLocked reports whether new series must wait for a flush. The last quarter of the buffer stays
// free: if it were full, Apply would wait, and known series with it.
func (h *Head) labelsFullLocked() bool { return h.mu.buffers.labelBytes > h.o.LabelBytes/4*3 }

// awaitRoom is how long a request with new series waits for a flush before it is refused. A flush usually
// takes less than a second, while a refused sender retries after several seconds.
const awaitRoom = 2 * time.Second

// Await waits for a limited time until the limit that Create has returned no longer applies, and reports
// whether that is so. Only the label buffer is worth waiting for.
func (h *Head) Await(ctx context.Context, reason error) bool {
	var limit *model.LimitError
	if !errors.As(reason, &limit) || limit.Limit != LimitLabelBuffer {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, awaitRoom)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.mu.room.Broadcast()
	})()
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.mu.flushing && !h.mu.shut && h.labelsFullLocked() && ctx.Err() == nil {
		h.wake()
		h.mu.room.Wait()
	}
	return !h.mu.shut && !h.labelsFullLocked()
}
