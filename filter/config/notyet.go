package config

import "strings"

// What the format has and this version lacks. A document that uses it is
// refused by name, since ignoring it would leave unprotected what its author
// believes to be protected. Whoever builds one of these deletes its name here.
var (
	notYetTop       = notYet("exempt", "client_ip", "global", "route_metadata", "shadow")
	notYetLimit     = notYet("max_wait", "overrides", "shadow", "enforce_percent", "scope", "charge", "count_status")
	notYetMatch     = notYet("virtual_host", "path_regex", "headers", "ip", "value")
	notYetResponse  = notYet("content_type", "headers", "rate_limit_headers", "retry_after_jitter")
	notYetAlgorithm = []string{"concurrency"}
	notYetKeyKind   = []string{"cookie", "query", "bearer", "metadata", "metadata_number", "property", "virtual_host", "rule"}
	notYetInBody    = []string{"{name}", "{rule}", "{limit}", "{remaining}", "{reset}", "{retry_after}"}
)

const (
	isNotYet = "is part of the format but not in this version yet"
	// A leaky bucket has to say that it is no queue while there are none.
	wantMode       = `"meter", which refuses requests; making them wait ("queue", the default) ` + isNotYet
	notYetCostFrom = `a cost from a header ` + isNotYet
)

// notYet are the refusals of these fields.
func notYet(fields ...string) []refusal {
	var all []refusal
	for _, field := range fields {
		all = append(all, refusal{field, isNotYet + ": leave it out"})
	}
	return all
}

// notYetIn returns the first of the words that text contains.
func notYetIn(text string, words []string) (word string, ok bool) {
	for _, word := range words {
		if strings.Contains(text, word) {
			return word, true
		}
	}
	return "", false
}
