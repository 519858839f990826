package demo

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"time"
)

// Certificates are PEM files for TLS between the parts of a demo.
type Certificates struct {
	// CA is what clients have to trust. Its key is forgotten: it signs nothing but Cert.
	CA []byte
	// Cert and Key are the servers'.
	Cert, Key []byte
}

// NewCertificates makes a certificate for names, host names or addresses, that is valid from an hour ago until life has passed, and
// a CA for it alone.
func NewCertificates(names []string, life time.Duration) (Certificates, error) {
	now := time.Now()
	ca := &x509.Certificate{
		Subject: pkix.Name{CommonName: "Tarry demo CA"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(life),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, MaxPathLenZero: true,
	}
	leaf := &x509.Certificate{
		Subject: pkix.Name{CommonName: "Tarry demo"}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, name)
		}
	}
	// Who trusts the CA trusts it for these names and no others.
	ca.PermittedDNSDomainsCritical = true
	ca.PermittedDNSDomains = leaf.DNSNames
	for _, ip := range leaf.IPAddresses {
		size := 8 * net.IPv6len
		if v4 := ip.To4(); v4 != nil {
			ip, size = v4, 8*net.IPv4len
		}
		ca.PermittedIPRanges = append(ca.PermittedIPRanges, &net.IPNet{IP: ip, Mask: net.CIDRMask(size, size)})
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Certificates{}, fmt.Errorf("make key: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Certificates{}, fmt.Errorf("make key: %w", err)
	}
	caDER, err := sign(ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return Certificates{}, err
	}
	leafDER, err := sign(leaf, ca, &key.PublicKey, caKey)
	if err != nil {
		return Certificates{}, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Certificates{}, fmt.Errorf("encode key: %w", err)
	}
	return Certificates{CA: block("CERTIFICATE", caDER), Cert: block("CERTIFICATE", leafDER), Key: block("PRIVATE KEY", keyDER)}, nil
}

func sign(c, parent *x509.Certificate, public *ecdsa.PublicKey, by *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, c, parent, public, by)
	if err != nil {
		return nil, fmt.Errorf("sign certificate: %w", err)
	}
	return der, nil
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
