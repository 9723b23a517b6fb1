package bill

import "github.com/shaledb/shale/internal/model"

// Statement is a bill with its times and prices. Its JSON is the member "bill" of responses.
type Statement struct {
	// Blocks is exact; Pages and PagesCached are upper bounds.
	Blocks      int64 `json:"blocks"`
	Pages       int64 `json:"pages"`
	PagesCached int64 `json:"pagesCached"`
	// Index is what the statement itself has read: footers, index pages and postings. The query finds them in
	// the cache.
	Index Priced `json:"index"`
	// Least and Most bound what the query will read besides. Likely is what it reads if it needs all these
	// pages, and reads neighbours with one request.
	Least  Priced `json:"least"`
	Likely Priced `json:"likely"`
	Most   Priced `json:"most"`
	// EndsEarly says that the query ends as soon as it has enough lines.
	EndsEarly bool `json:"endsEarly"`
	// Assumed is what the seconds follow from.
	Assumed Assumed `json:"assumed"`
}

// Priced are requests and bytes with what they cost.
type Priced struct {
	Requests int64   `json:"requests"`
	Bytes    int64   `json:"bytes"`
	Seconds  float64 `json:"seconds"`
	Dollars  float64 `json:"dollars"`
}

// Assumed is what seconds are computed from: requests × RequestSeconds × Queries / Parallel.
type Assumed struct {
	// RequestSeconds is the mean of the last requests that queries made to the bucket, or an assumption if
	// Measured is false.
	RequestSeconds float64 `json:"requestSeconds"`
	Measured       bool    `json:"measured"`
	// Parallel is the most requests of one query at a time.
	Parallel int64 `json:"parallel"`
	// Queries share what the bucket does: the running ones.
	Queries int64 `json:"queries"`
}

// State returns the statement of a bill. index is what making it has read, and running the number of queries
// that run, with the one that is billed.
func (b *Budgets) State(f model.BillFigures, index model.Reads, running int64) *Statement {
	s := &Statement{Blocks: f.Blocks, Pages: f.Pages, PagesCached: f.PagesCached, EndsEarly: f.EndsEarly}
	s.Assumed = Assumed{Parallel: parallelRequests, Queries: max(1, running)}
	s.Assumed.RequestSeconds, s.Assumed.Measured = b.rate.request()
	price := func(r model.Reads) Priced {
		seconds := 0.0
		if r.Requests > 0 {
			a := &s.Assumed
			// A few requests take as long as one.
			rounds := max(1, float64(r.Requests*a.Queries)/float64(a.Parallel))
			seconds = rounds * a.RequestSeconds
		}
		return Priced{r.Requests, r.Bytes, seconds, float64(b.prices.Cost(r.Requests, r.Bytes))}
	}
	s.Index, s.Least, s.Likely, s.Most = price(index), price(f.Least), price(f.Likely), price(f.Most)
	return s
}
