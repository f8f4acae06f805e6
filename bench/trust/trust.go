// Package trust lets the client's own transport trust a server, which it has no option
// for.
package trust

import (
	"errors"
	"os"
)

// PEM makes this process trust a certificate. It is to be called before the first
// handshake of the process; forget removes the file in which the certificate is.
func PEM(certificate []byte) (forget func(), err error) {
	file, err := os.CreateTemp("", "*.pem")
	if err != nil {
		return func() {}, err
	}
	_, err = file.Write(certificate)
	return func() { _ = os.Remove(file.Name()) }, errors.Join(err, file.Close(), os.Setenv("SSL_CERT_FILE", file.Name()))
}
