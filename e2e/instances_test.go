package e2e

import (
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

func TestInstancesOfDifferentNamesHaveLimitsOfTheirOwn(t *testing.T) {
	for _, c := range []struct{ name, outerVM, innerVM string }{
		{"in one VM", "one", "one"},
		{"in VMs of their own", "one", "two"},
	} {
		t.Run(c.name, func(t *testing.T) {
			site := serveChain(t, envoytest.Listener{},
				envoytest.Wasm{Name: newName(t), VMID: c.outerVM, Config: perIP(7, "")},
				envoytest.Wasm{Name: newName(t), VMID: c.innerVM, Config: perIP(3, "")})
			client := site.newcomer(t, "127.0.0.2")
			for range 3 {
				expectAdmitted(t, client.Get(t, "/"))
			}
			// The inner one refuses what the outer one has admitted and charged.
			for range 4 {
				response := client.Get(t, "/")
				expectRefused(t, response)
				expectLimit(t, response, 3, 0)
			}
			response := client.Get(t, "/")
			expectRefused(t, response)
			expectLimit(t, response, 7, 0)
			site.expectReached(t, 3)
		})
	}
}

func TestInstancesOfOneNameAndVMShareTheirLimits(t *testing.T) {
	instance := envoytest.Wasm{Name: newName(t), Config: perIP(5, "")}
	site := serveChain(t, envoytest.Listener{}, instance, instance)
	client := site.newcomer(t, "127.0.0.2")
	for range 2 {
		expectAdmitted(t, client.Get(t, "/")) // each takes 2 of the 5
	}
	expectRefused(t, client.Get(t, "/"))
	site.expectReached(t, 2)
}

func TestInstancesInDifferentVMsShareNothing(t *testing.T) {
	name := newName(t)
	site := serveChain(t, envoytest.Listener{},
		envoytest.Wasm{Name: name, VMID: "one", Config: perIP(5, "")},
		envoytest.Wasm{Name: name, VMID: "two", Config: perIP(5, "")})
	client := site.newcomer(t, "127.0.0.2")
	for remaining := 4; remaining >= 0; remaining-- {
		response := client.Get(t, "/")
		expectAdmitted(t, response)
		expectLimit(t, response, 5, remaining)
	}
	expectRefused(t, client.Get(t, "/"))
}

func TestListenersWhoseInstancesShareNameAndVMShareTheirLimits(t *testing.T) {
	name, otherName := newName(t), newName(t)
	listener := func(name, vmID string) *envoytest.Client {
		t.Helper()
		return serveChain(t, envoytest.Listener{}, envoytest.Wasm{Name: name, VMID: vmID, Config: perIP(5, "")}).
			newcomer(t, "127.0.0.2")
	}
	first, same := listener(name, "one"), listener(name, "one")
	for range 3 {
		expectAdmitted(t, first.Get(t, "/"))
	}
	expectLimit(t, same.Get(t, "/"), 5, 1)
	expectLimit(t, first.Get(t, "/"), 5, 0)
	expectRefused(t, same.Get(t, "/"))
	expectLimit(t, listener(otherName, "one").Get(t, "/"), 5, 4)
	expectLimit(t, listener(name, "two").Get(t, "/"), 5, 4)
}
