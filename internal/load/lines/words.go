package lines

// The vocabulary of generated lines. The words are drawn; rare ones are rare on purpose: a
// search for "context deadline exceeded" finds a few lines in a thousand.
var (
	appNames = [...]string{
		"checkout", "cart", "catalog", "payments", "shipping", "search", "accounts", "gateway", "inventory", "pricing",
		"recommend", "reviews", "sessions", "notify", "billing", "fraud", "orders", "media", "geo", "audit",
	}
	methods = [...]string{"GET", "GET", "GET", "GET", "POST", "PUT", "DELETE", "PATCH"}
	paths   = [...]string{
		"/api/v1/orders/", "/api/v1/users/", "/api/v1/carts/", "/api/v2/products/", "/api/v2/search/", "/internal/cache/", "/api/v1/payments/", "/static/img/",
	}
	agents = [...]string{
		"Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/142.0", "Mozilla/5.0 (Macintosh; Intel Mac OS X 14_5) Safari/605.1.15",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/139.0.0.0", "curl/8.5.0", "okhttp/4.12.0", "Go-http-client/2.0", "kube-probe/1.31", "python-requests/2.32",
	}
	components = [...]string{"http.server", "db.pool", "cache.redis", "queue.consumer", "grpc.client", "scheduler", "auth.token", "storage.s3"}
	callers    = [...]string{"server.go:214", "pool.go:88", "redis.go:301", "consumer.go:157", "client.go:442", "cron.go:63", "token.go:129", "bucket.go:275"}
	classes    = [...]string{"c.example.shop.OrderService", "c.example.shop.CartStore", "c.example.pay.Ledger", "c.example.web.Filter", "o.s.jdbc.Pool", "i.n.c.Handler", "c.example.jobs.Runner", "o.a.k.Consumer"}

	calmMessages = [...]string{
		"request completed", "request completed", "request completed", "served from cache", "user signed in", "order accepted", "job finished",
		"connection opened", "connection closed", "message consumed", "token refreshed", "flushed batch to storage", "health check passed",
		"config reloaded", "snapshot written", "rate limiter state updated",
	}
	troubleMessages = [...]string{
		"upstream request failed, will retry", "slow query detected", "connection reset by peer", "context deadline exceeded", "payment declined by issuer",
		"cache miss storm on shard", "retry budget exhausted", "invalid token signature", "queue lag above threshold", "failed to acquire lock in time",
		"replica is behind primary", "circuit breaker opened", "unexpected EOF while reading body", "disk usage above watermark", "schema mismatch, dropping field", "too many open files",
	}
	statuses      = [...]string{"200", "200", "200", "200", "200", "200", "200", "200", "200", "200", "201", "204", "206", "301", "304", "404"}
	troubleStatus = [...]string{"400", "401", "403", "404", "408", "409", "429", "429", "500", "500", "500", "502", "502", "503", "503", "504"}
)
