// Package issuer verifies the tokens of an OpenID Connect issuer: JWTs that it has signed for an audience.
//
// coreos/go-oidc checks issuer, audience and times. The package owns the keys of the issuer. It fetches them
// in the background and keeps them while the issuer is away. A token with an unknown key makes it fetch
// them at once, but not more often than every ten seconds. The key set of go-oidc fetches for each token
// whose signature is wrong, so anyone could make Shale flood the issuer.
//
// The package knows no tenant and no right: auth reads them from the claims.
package issuer
