package config

import (
	"crypto"
	"fmt"
)

// OAuth is what hermesd needs to know to get access tokens of a server behind a url.
type OAuth struct {
	// Grant is how tokens are had: "authorization_code" (a person logs in once), "client_credentials" (hermesd has its own
	// account), "workload_identity" (the platform's token for this process is exchanged) or "enterprise_managed" (a person
	// logs in at the company's identity provider, which decides for every server).
	Grant string `key:"grant" default:"authorization_code" in:"authorization_code|client_credentials|workload_identity|enterprise_managed"`
	// Issuer is the only authorization server that is asked; without it that is the one which the server names. Where it or
	// url is written, the authorization server may have a private address.
	Issuer string `key:"issuer"`
	// ClientID is hermesd's registration at the authorization server; without it hermesd registers itself.
	ClientID string `key:"client_id"`
	// ClientSecret belongs to client_id.
	ClientSecret string `key:"client_secret" secret:"true"`
	// PrivateKey belongs to client_id instead of a secret (private_key_jwt): a PEM text of type PRIVATE KEY.
	PrivateKey string `key:"private_key" secret:"true"`
	// PrivateKeyID names private_key where the client is registered with several keys.
	PrivateKeyID string `key:"private_key_id"`
	// SigningAlgorithm is what private_key signs by; without it ES256, ES384, ES512, RS256 or EdDSA, by the kind of the key.
	SigningAlgorithm string `key:"signing_algorithm" in:"ES256|ES384|ES512|RS256|RS384|RS512|PS256|PS384|PS512|EdDSA"`
	// ClientMetadataURL is the https address of a client ID metadata document, for authorization servers that take one.
	ClientMetadataURL string `key:"client_metadata_url"`
	// Scopes are asked for instead of those that the server names.
	Scopes []string `key:"scopes"`
	// DPoP says whether tokens are bound to a key, so that nobody else can use them: "auto" (where the servers can do it),
	// "required" or "off".
	DPoP string `key:"dpop" default:"auto" in:"auto|required|off"`
	// Assertion is the token that the platform gave to this process, for grant "workload_identity".
	Assertion string `key:"assertion" secret:"true"`
	// AssertionFile holds it, and is read at each use, since platforms replace it before it ends.
	AssertionFile string `key:"assertion_file" path:"true"`
	// IDP is the identity provider, for grant "enterprise_managed".
	IDP *IDP `key:"idp"`
	// CredentialsFile holds tokens from elsewhere: an access token as plain text, or what a login stores.
	CredentialsFile string `key:"credentials_file" path:"true"`
	// RedirectPort is the port on 127.0.0.1 that a login comes back to; 0 takes any that is free.
	RedirectPort int `key:"redirect_port" default:"0" min:"0" max:"65535"`
}

// IDP is a company's identity provider, where people log in and which decides what servers hermesd may use for them.
type IDP struct {
	// Issuer is its issuer identifier; everything else is found from there.
	Issuer string `key:"issuer" required:"true"`
	// ClientID is hermesd's registration at the identity provider.
	ClientID string `key:"client_id" required:"true"`
	// ClientSecret belongs to client_id.
	ClientSecret string `key:"client_secret" secret:"true"`
	// PrivateKey belongs to client_id instead of a secret, as in oauth.
	PrivateKey string `key:"private_key" secret:"true"`
	// PrivateKeyID names private_key where the client is registered with several keys.
	PrivateKeyID string `key:"private_key_id"`
	// SigningAlgorithm is what private_key signs by, as in oauth.
	SigningAlgorithm string `key:"signing_algorithm" in:"ES256|ES384|ES512|RS256|RS384|RS512|PS256|PS384|PS512|EdDSA"`
	// IDToken is a person's ID token; without it and id_token_file the person logs in by `hermesd mcp-server login NAME`.
	IDToken string `key:"id_token" secret:"true"`
	// IDTokenFile holds it, and is read at each use.
	IDTokenFile string `key:"id_token_file" path:"true"`
}

// SigningKey is the private key and the algorithm that it signs by; nil without private_key. Errors do not show the key.
func (o *OAuth) SigningKey() (crypto.Signer, string, error) {
	return signingKey(o.PrivateKey, o.SigningAlgorithm)
}

// SigningKey is the private key and the algorithm that it signs by; nil without private_key. Errors do not show the key.
func (i *IDP) SigningKey() (crypto.Signer, string, error) {
	return signingKey(i.PrivateKey, i.SigningAlgorithm)
}

func (o *OAuth) check(s *scope) {
	s.address("issuer", o.Issuer, true)
	s.address("client_metadata_url", o.ClientMetadataURL, true)
	s.signingKey(o.SigningKey)
	s.needs("client_id", "client_secret", "private_key")
	only := map[string]string{
		"assertion": "workload_identity", "assertion_file": "workload_identity", "client_metadata_url": "authorization_code",
	}
	for _, key := range []string{"assertion", "assertion_file", "client_metadata_url"} {
		if s.written(key) && o.Grant != only[key] {
			s.errorf(key, key+" with another grant", "%s has a meaning only with grant = %q.", key, only[key])
		}
	}
	if o.RedirectPort != 0 && o.Grant != "authorization_code" && o.Grant != "enterprise_managed" {
		s.errorf("redirect_port", "redirect_port without a login", "Nobody logs in with grant = %q.", o.Grant)
	}
	if o.IDP != nil && o.Grant != "enterprise_managed" {
		s.fault(s.scopes["idp"].at, "idp with another grant", `idp has a meaning only with grant = "enterprise_managed".`)
	}
	switch o.Grant {
	case "client_credentials":
		s.requires(o.Grant, "client_id")
		s.exactlyOne("client_secret", "private_key")
	case "workload_identity":
		s.exactlyOne("assertion", "assertion_file")
		s.atMostOne("client_secret", "private_key")
	case "enterprise_managed":
		s.requires(o.Grant, "client_id")
		s.atMostOne("client_secret", "private_key")
		if o.IDP == nil {
			s.fault(s.at, "Missing idp", `grant = "enterprise_managed" needs idp { issuer = … client_id = … }.`)
		}
	default:
		s.atMostOne("client_secret", "private_key")
	}
}

func (i *IDP) check(s *scope) {
	s.address("issuer", i.Issuer, true)
	s.signingKey(i.SigningKey)
	s.atMostOne("client_secret", "private_key")
	s.atMostOne("id_token", "id_token_file")
}

// requires reports a key that a grant cannot do without.
func (s *scope) requires(grant, key string) {
	if !s.written(key) {
		s.fault(s.at, fmt.Sprintf("Missing key %q", key), fmt.Sprintf("grant = %q needs %s.", grant, key))
	}
}

// atMostOne refuses a second key of two that say the same thing in different ways.
func (s *scope) atMostOne(one, other string) {
	if s.written(one) && s.written(other) {
		s.errorf(other, fmt.Sprintf("Both %s and %s", one, other), "%s takes %s or %s, not both.", s.what, one, other)
	}
}

// signingKey checks a private key and what goes with it.
func (s *scope) signingKey(key func() (crypto.Signer, string, error)) {
	s.needs("private_key", "private_key_id", "signing_algorithm")
	if !s.written("private_key") || s.failed["private_key"] || s.failed["signing_algorithm"] {
		return
	}
	if _, _, err := key(); err != nil {
		s.errorf("private_key", "Invalid value for private_key", "%s.", err)
	}
}
