package envoytest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"testing"
)

// SetMetadata returns Envoy's set_metadata filter, which puts the values into
// the dynamic metadata of every request under the name namespace.
func SetMetadata(namespace string, values Object) Object {
	return httpFilter("envoy.filters.http.set_metadata", "http.set_metadata.v3.Config", Object{
		"metadata": []Object{{"metadata_namespace": namespace, "value": values}},
	})
}

const (
	tokenIssuer = "https://issuer.test"
	tokenSecret = "the secret that signs the tokens of these tests"
)

// JWTAuthn returns Envoy's jwt_authn filter. It puts the claims of a Token into
// the dynamic metadata "envoy.filters.http.jwt_authn" as "payload", lets
// requests without a token pass and refuses those whose token is not signed as
// it should be. The Authorization header goes on to the filters behind it.
func JWTAuthn() Object {
	keys, _ := json.Marshal(Object{"keys": []Object{{
		"kty": "oct", "alg": "HS256", "k": base64.RawURLEncoding.EncodeToString([]byte(tokenSecret)),
	}}})
	return httpFilter("envoy.filters.http.jwt_authn", "http.jwt_authn.v3.JwtAuthentication", Object{
		"providers": Object{"test": Object{
			"issuer":              tokenIssuer,
			"local_jwks":          Object{"inline_string": string(keys)},
			"payload_in_metadata": "payload",
			"forward":             true,
		}},
		"rules": []Object{{
			"match":    Object{"prefix": "/"},
			"requires": Object{"requires_any": Object{"requirements": []Object{{"provider_name": "test"}, {"allow_missing": Object{}}}}},
		}},
	})
}

// Token returns a JSON Web Token (RFC 7519) with these claims that JWTAuthn
// accepts.
func Token(t testing.TB, claims Object) string {
	t.Helper()
	claims["iss"] = tokenIssuer
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(payload)
	mac := hmac.New(sha256.New, []byte(tokenSecret))
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
