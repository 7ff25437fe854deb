// Package field reads what stands in the fields of a request: cookies, query
// parameters, tokens, lists of addresses and numbers.
//
// The functions are pure: they take bytes, return parts of them or append to
// what they are given, allocate nothing for what is well-formed, and never fail:
// what cannot be understood is absent. Where the standards leave a choice it is
// the one by which a client that spells the same thing in another way gains no
// second bucket. The package may import package normal.
package field
