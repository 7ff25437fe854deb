package config

import "errors"

// What the format has and this version lacks. A document that uses it is
// refused by name, since ignoring it would leave unprotected what its author
// believes to be protected. Whoever builds one of these deletes its name here.
var notYetTop = notYet("global")

const isNotYet = "is part of the format but not in this version yet"

// notYet are the refusals of these fields.
func notYet(fields ...string) []refusal {
	var all []refusal
	for _, field := range fields {
		all = append(all, refusal{field, isNotYet + ": leave it out"})
	}
	return all
}

const (
	wantScope     = `"process"`
	scopeProcess  = "process"
	scopeNotBuilt = "global"
)

// scopeValue is who counts together: so far the workers of one process.
var scopeValue = stringAs(wantScope, func(s string) (string, error) {
	switch s {
	case scopeProcess:
		return s, nil
	case scopeNotBuilt:
		return "", errors.New(isNotYet + ": want " + wantScope + ", or leave it out")
	}
	return "", wantError(wantScope)
}).as(enumSchema([]string{scopeProcess}))
