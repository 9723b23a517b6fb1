// Package asked remembers on which day queries asked for each metric and each label name last.
//
// It sees matchers and names, and no rows. Its memory is bounded; what it has no room for is not forgotten in
// silence: the tenant is marked, and nothing of it is called unused for as long as the mark counts.
package asked
