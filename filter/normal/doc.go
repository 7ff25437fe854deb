// Package normal brings paths and host names into the one spelling in which
// rules compare them and keys count them, so that a client cannot dodge a rule,
// or get a second bucket, by spelling the same resource in another way.
//
// The functions are pure: they take bytes and append bytes, allocate nothing
// when the destination is large enough, and never fail. What cannot be
// understood is left as it stands, since the upstream will most likely refuse
// it. The package imports nothing.
package normal
