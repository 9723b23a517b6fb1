// Package curve says what caches of other sizes would have done with the live traffic: miss-ratio curves.
//
// It owns small simulations of the tiers, by the code of their policies, which see a sample of the keys. What
// fits into a cache of a size is found out with a hundredth of the keys and a hundredth of the size. It also
// owns the curves of each hour of a week, in a file that a restart reads. Its memory and its time are
// bounded: with more keys or more touches the sample becomes smaller. It never touches a real tier.
package curve
