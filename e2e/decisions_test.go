package e2e

import (
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// decisionsConfig has a path for each decision that operators can see.
const decisionsConfig = `{
	"limits": {
		"decided":  {"algorithm": "token_bucket", "capacity": 2, "refill_rate": "1/h", "key": ["header:x-client"]},
		"longer":   {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": ["header:x-client"]},
		"watched":  {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": ["header:x-client"], "shadow": true},
		"required": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": ["header:x-key"], "missing": "deny"}
	},
	"exempt": [{"path": "/exempt"}],
	"rules": [
		{"match": {"path": "/one"}, "limits": ["decided"]},
		{"match": {"path": "/two"}, "limits": ["decided", "longer", "watched"]},
		{"match": {"path": "/watched"}, "limits": ["watched"]},
		{"match": {"path": "/required"}, "limits": ["required"]},
		{"match": {"path": "/free"}, "limits": []}
	]
}`

func TestTheAccessLogSaysWhatWasDecided(t *testing.T) {
	site := serve(t, decisionsConfig, envoytest.Listener{})
	client := site.client(t)
	const refusedBy = "sluice_rate_limited."
	for _, c := range []struct {
		path    string // with a query that no other request has
		client  string
		details string // of a refusal
		state   string
	}{
		{"/one?1", "a", "", "allowed"},
		{"/one?2", "a", "", "allowed"},
		{"/one?3", "a", refusedBy + "decided", "refused:decided"},
		{"/watched?1", "b", "", "allowed"},
		{"/watched?2", "b", "", "shadow:watched"},
		{"/two?1", "c", "", "allowed"},
		// The one that refuses longest comes first; one in shadow never does.
		{"/two?2", "c", refusedBy + "longer", "refused:longer,shadow:watched"},
		{"/one?4", "c", "", "allowed"},
		{"/two?3", "c", refusedBy + "longer", "refused:longer,refused:decided,shadow:watched"},
		// What an enforced limit admits says so before what one in shadow does not.
		{"/watched?3", "d", "", "allowed"},
		{"/two?4", "d", "", "allowed,shadow:watched"},
		{"/required?1", "e", refusedBy + "required", "refused:required"},
		{"/free?1", "f", "", ""},
		{"/exempt?1", "a", "", ""},
	} {
		response := client.Get(t, c.path, "x-client: "+c.client)
		details, status := "via_upstream", 200
		if c.details != "" {
			details, status = c.details, 429
		}
		entry := site.awaitLogged(t, c.path)
		if response.Status != status || entry.Status != status || entry.Details != details || entry.State != c.state {
			t.Errorf("%s of %s: got status %d, logged as %d with details %q and state %q; want %d, %q, %q",
				c.path, c.client, response.Status, entry.Status, entry.Details, entry.State, status, details, c.state)
		}
	}
}

func TestEveryInstanceAddsItsDecisionToTheAccessLog(t *testing.T) {
	for name, vm := range map[string]string{"in one VM": "one", "in VMs of their own": "two"} {
		t.Run(name, func(t *testing.T) {
			site := serveChain(t, envoytest.Listener{},
				envoytest.Wasm{Name: newName(t), VMID: "one", Config: decisionsConfig},
				envoytest.Wasm{Name: newName(t), VMID: vm, Config: `{
					"limits": {"inner": {"algorithm": "token_bucket", "capacity": 3, "refill_rate": "1/d", "key": []}},
					"rules":  [{"match": {"path": "/skipped"}, "limits": []}, {"limits": ["inner"]}]
				}`})
			client := site.client(t)
			for _, c := range []struct{ path, details, state string }{
				{"/one?1", "via_upstream", "allowed,allowed"},
				{"/watched?1", "via_upstream", "allowed,allowed"},
				{"/watched?2", "via_upstream", "shadow:watched,allowed"},
				{"/watched?3", "sluice_rate_limited.inner", "shadow:watched,refused:inner"},
				{"/one?2", "sluice_rate_limited.inner", "allowed,refused:inner"},
				{"/one?3", "sluice_rate_limited.decided", "refused:decided"}, // the inner one is not asked
				{"/skipped", "via_upstream", ""},
			} {
				client.Get(t, c.path, "x-client: a")
				if entry := site.awaitLogged(t, c.path); entry.Details != c.details || entry.State != c.state {
					t.Errorf("%s is logged with details %q and state %q, want %q and %q", c.path, entry.Details, entry.State, c.details, c.state)
				}
			}
		})
	}
}
