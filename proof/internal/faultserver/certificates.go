package faultserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// A Certificate is a certificate of 127.0.0.1 that is its own authority.
type Certificate struct {
	PEM  []byte // as SSL_CERT_FILE has it
	pair tls.Certificate
}

// NewCertificate makes a certificate, which takes a while. It is valid from 1990 on: bubbles of testing/synctest begin
// in the year 2000.
func NewCertificate() (*Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Unix(631152000, 0), NotAfter: time.Unix(4102444800, 0),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return &Certificate{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
	}, err
}

// Client is the TLS of a client that trusts the certificate.
func (c *Certificate) Client() *tls.Config {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.PEM)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// Server is the TLS of a server with the certificate, which offers these protocols.
func (c *Certificate) Server(protocols ...string) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{c.pair}, NextProtos: protocols, MinVersion: tls.VersionTLS12}
}
