// Package bill turns what a query reads of the bucket into time and money, and keeps queries within budgets:
// each by itself, those of a tenant, and all of the process.
//
// It knows sums of requests and bytes. What a query would read is found out by the sources of the read path,
// see [model.Bill].
package bill
