package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// issuer signs tokens as the issuer of instances.yaml does.
type issuer struct{ key *ecdsa.PrivateKey }

func newIssuer(t *testing.T) issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return issuer{key}
}

var base64url = base64.RawURLEncoding.EncodeToString

// publicKey returns the members of the key's JWK (RFC 7518, section 6.2.1).
func (i issuer) publicKey(t *testing.T) string {
	t.Helper()
	point, err := i.key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`"x":"%s","y":"%s"`, base64url(point[1:33]), base64url(point[33:]))
}

// token returns a header with a token for a user (RFC 7519).
func (i issuer) token(t *testing.T, user string) string {
	t.Helper()
	signed := base64url([]byte(`{"alg":"ES256","kid":"example"}`)) + "." +
		base64url(fmt.Appendf(nil, `{"iss":"https://issuer.example.com","sub":%q}`, user))
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := make([]byte, 64) // r, s (RFC 7518, section 3.4)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return "authorization: Bearer " + signed + "." + base64url(signature)
}

func TestInstancesAroundAuthenticationLimitGuessersByAddressAndUsersByToken(t *testing.T) {
	const exampleKey = `"x":"E7eYXp2HvbYeb7wWsdcMl0vDbFLLCCdjhYGaS29MZaE","y":"auYtO3mfHi_aoMUwPFVpPwK9dQQzO3kNAApYdHh7Cc0"`
	issuer := newIssuer(t)
	_, upstream, addr := shipped(t, "instances.yaml", exampleKey, issuer.publicKey(t),
		`"refill_rate": "10/m"`, `"refill_rate": "1/d"`)

	// Who has no token gets 401 until the address has spent its ten.
	guesser := from(t, "127.0.0.2", addr)
	guess := newIssuer(t).token(t, "somebody")
	for i := range 10 {
		if response := guesser.Get(t, "/", guess); response.Status != 401 {
			t.Fatalf("guess %d got status %d, want 401", i, response.Status)
		}
	}
	response := guesser.Get(t, "/", guess)
	expectRefused(t, response)
	expectLimit(t, response, 10, 0)
	expectRefused(t, guesser.Get(t, "/", issuer.token(t, "somebody")))

	// A user has three requests, from whatever addresses. The trial would have
	// refused the second, and refuses nobody.
	sent := 0
	expectSpent(t, 3, func() envoytest.Response {
		sent++
		return from(t, fmt.Sprintf("127.0.1.%d", sent), addr).Get(t, "/", issuer.token(t, "ada"))
	})
	expectLimit(t, from(t, "127.0.1.1", addr).Get(t, "/", issuer.token(t, "bob")), 3, 2)
	if n := upstream.Requests(); n != 4 {
		t.Errorf("%d requests reached the upstream, want 4", n)
	}
}
