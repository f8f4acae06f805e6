package faultserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"time"
)

// Host is the name that the good certificate is issued to, besides 127.0.0.1.
const Host = "gateway.test"

// Certificates are an authority and what it has issued. All but Expired are
// valid from 1990 on: bubbles of testing/synctest begin in the year 2000.
type Certificates struct {
	Pool                     *x509.CertPool // the authority
	PEM                      []byte         // the authority, as SSL_CERT_FILE has it
	Good, OtherHost, Expired tls.Certificate
}

// NewCertificates makes an authority, which takes a while.
func NewCertificates() (*Certificates, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: year(1990), NotAfter: year(2190),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, root, root, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	if root, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	all := &Certificates{Pool: x509.NewCertPool(), PEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	all.Pool.AddCert(root)
	var errs [3]error
	all.Good, errs[0] = issue(root, key, Host, 2190)
	all.OtherHost, errs[1] = issue(root, key, "other.test", 2190)
	all.Expired, errs[2] = issue(root, key, Host, 1991)
	return all, errors.Join(errs[:]...)
}

func year(n int) time.Time { return time.Date(n, 1, 1, 0, 0, 0, 0, time.UTC) }

func issue(root *x509.Certificate, key *ecdsa.PrivateKey, host string, until int) (tls.Certificate, error) {
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: year(1990), NotAfter: year(until), DNSNames: []string{host},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if host == Host {
		leaf.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, root, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// Client is the TLS of a client that trusts the authority.
func (c *Certificates) Client() *tls.Config {
	return &tls.Config{RootCAs: c.Pool, MinVersion: tls.VersionTLS12}
}

// Server is the TLS of a server with the good certificate, which offers these
// protocols.
func (c *Certificates) Server(protocols ...string) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{c.Good}, NextProtos: protocols, MinVersion: tls.VersionTLS12}
}
