package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"
)

// An authority is what a mock serves HTTPS with. Its key is nowhere but in the memory of
// the process, and is not needed after the one certificate that it signs.
type authority struct {
	config *tls.Config
	file   string // with its certificate
	own    bool   // whether the file is temporary
}

// newAuthority makes an authority and a certificate for names and an address, and writes
// that of the authority to a file, a temporary one if no name is given.
func newAuthority(names []string, addr net.Addr, file string) (*authority, error) {
	root, leaf := certificates(time.Now(), names, addr)
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, &rootKey.PublicKey, rootKey)
	if err != nil {
		return nil, err
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, root, &leafKey.PublicKey, rootKey)
	if err != nil {
		return nil, fmt.Errorf("no certificate can be made for these names: %w", err)
	}
	a := &authority{file: file, own: file == "", config: &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"},
		Certificates: []tls.Certificate{{Certificate: [][]byte{leafDER}, PrivateKey: leafKey}},
	}}
	return a, a.write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER}))
}

// certificates returns what the two certificates say, which are valid for a month.
func certificates(now time.Time, names []string, addr net.Addr) (root, leaf *x509.Certificate) {
	root = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gateway mock, for tests only"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 1, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf = &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "gateway mock"},
		NotBefore: root.NotBefore, NotAfter: root.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	for _, name := range names {
		if ip, err := netip.ParseAddr(name); err == nil {
			leaf.IPAddresses = append(leaf.IPAddresses, net.IP(ip.AsSlice()))
		} else {
			leaf.DNSNames = append(leaf.DNSNames, name)
		}
	}
	if tcp, ok := addr.(*net.TCPAddr); ok && !tcp.IP.IsUnspecified() {
		leaf.IPAddresses = append(leaf.IPAddresses, tcp.IP)
	}
	return root, leaf
}

// write writes the certificate of the authority, which everybody may read, to its file.
func (a *authority) write(text []byte) error {
	var file *os.File
	var err error
	if a.own {
		file, err = os.CreateTemp("", "gateway-mock-*.pem")
	} else {
		file, err = os.Create(a.file)
	}
	if err != nil {
		return fmt.Errorf("the file of --tls-ca cannot be written: %w", withoutPath(err))
	}
	a.file = file.Name()
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err != nil {
		a.remove()
		return fmt.Errorf("the file of --tls-ca cannot be written: %w", withoutPath(err))
	}
	return nil
}

// remove removes a temporary file.
func (a *authority) remove() {
	if a.own {
		_ = os.Remove(a.file)
	}
}

// waitFor waits until a mock responds.
func (m *mockFlags) waitFor(ctx context.Context, host string) error {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	url, transport := "http://"+host, &http.Transport{DisableKeepAlives: true}
	if m.tls {
		// Whether it is ready is all that is asked, and no key is sent.
		url, transport.TLSClientConfig = "https://"+host, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} // #nosec G402 -- it is asked only whether it is ready
	}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := healthy(ctx, &http.Client{Transport: transport}, url+"/_mock/health")
		if err == nil || errors.Is(err, errNoMock) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("no mock responds at the address of --addr within %v: %w", m.timeout, withoutPath(err))
		}
	}
}

var errNoMock = errors.New("what responds at this address is no mock")

// healthy asks a mock once.
func healthy(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request) // #nosec G704 -- the address is that of --addr
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 4096))
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s", errNoMock, response.Status)
	}
	return nil
}
