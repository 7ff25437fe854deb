package config

// What the format has and this version lacks. A document that uses it is
// refused by name, since ignoring it would leave unprotected what its author
// believes to be protected. Whoever builds one of these deletes its name here.
var (
	notYetTop       = notYet("global")
	notYetLimit     = notYet("max_wait", "scope", "charge", "count_status")
	notYetAlgorithm = []string{"concurrency"}
)

const (
	isNotYet = "is part of the format but not in this version yet"
	// A leaky bucket has to say that it is no queue while there are none.
	wantMode = `"meter", which refuses requests; making them wait ("queue", the default) ` + isNotYet
)

// notYet are the refusals of these fields.
func notYet(fields ...string) []refusal {
	var all []refusal
	for _, field := range fields {
		all = append(all, refusal{field, isNotYet + ": leave it out"})
	}
	return all
}
