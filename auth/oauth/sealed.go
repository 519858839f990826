package oauth

import "tarry/auth/vault"

// Sealed lists what is encrypted of a flow, by the columns of its row.
func (f Flow) Sealed() []vault.Sealed {
	code := columnAnswer
	if f.Status == FlowParked {
		code = columnParked
	}
	return []vault.Sealed{
		{Column: "verifier", Cipher: f.Verifier, AD: f.ad(columnVerifier)},
		{Column: "nonce", Cipher: f.Nonce, AD: f.ad(columnNonce)},
		{Column: "code", Cipher: f.Code, AD: f.ad(code)},
		{Column: "client_secret", Cipher: f.ClientSecret, AD: f.ad(columnClientSecret)},
		{Column: "device", Cipher: f.Device, AD: f.ad(columnDevice)},
	}
}

// Sealed lists what is encrypted of a grant, by the columns of its row.
func (g Grant) Sealed() []vault.Sealed {
	return []vault.Sealed{
		{Column: "access", Cipher: g.Access, AD: g.ad(columnAccess)},
		{Column: "refresh", Cipher: g.Refresh, AD: g.ad(columnRefresh)},
		{Column: "client_secret", Cipher: g.ClientSecret, AD: g.ad(columnClientSecret)},
		{Column: "id_token", Cipher: g.IDToken, AD: g.ad(columnIDToken)},
	}
}

// Sealed lists what is encrypted of a registration, by the columns of its row.
func (r Registration) Sealed() []vault.Sealed {
	return []vault.Sealed{{Column: "secret", Cipher: r.Secret, AD: r.ad(r.TokenEndpoint)}}
}
