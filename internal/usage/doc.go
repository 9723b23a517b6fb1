// Package usage is the account of what each tenant has written, stored and read, by day, and what that costs.
//
// A tenant has an account of its own once it has stored something, up to a bound; requests of all others
// count together. So a flood of names costs no memory. Days go to files, one a day. The package counts what
// it is told: it knows no store and no request.
package usage
