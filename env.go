package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/cryptogw/gateway/internal/validate"
)

// Environment variables that [FromEnv] reads.
const (
	envBaseURL    = "GATEWAY_BASE_URL"
	envAPIKey     = "GATEWAY_API_KEY" // #nosec G101 -- the name of a variable
	envAPIKeyFile = "GATEWAY_API_KEY_FILE"
	envPlainHTTP  = "GATEWAY_PLAIN_HTTP"
)

// FromEnv returns a client as [New] does, from environment variables: the base URL
// from GATEWAY_BASE_URL, which is required, and the key from
// GATEWAY_API_KEY or from the file that GATEWAY_API_KEY_FILE names, which is read
// once and may end in a line end: for a key that changes use [APIKeyFile]. Without either
// the key is empty; with both, and with a file that cannot be read within 5 seconds, FromEnv fails.
// GATEWAY_PLAIN_HTTP=1 is [WithPlainHTTP]; any other value but 0 is refused. A variable
// that is empty counts as not set.
//
// What is wrong is an [*ArgumentError] that names the variable, or the option.
func FromEnv(opts ...Option) (*Client, error) {
	baseURL := os.Getenv(envBaseURL)
	if baseURL == "" {
		return nil, badOption(envBaseURL, "is required")
	}
	key, from, err := keyFromEnv()
	if err != nil {
		return nil, err
	}
	switch os.Getenv(envPlainHTTP) {
	case "", "0":
	case "1":
		opts = append([]Option{WithPlainHTTP()}, opts...)
	default:
		return nil, badOption(envPlainHTTP, "must be 1 or 0")
	}
	client, err := New(baseURL, key, opts...)
	return client, inEnv(err, from)
}

// keyFromEnv returns the key and the variable that it came from.
func keyFromEnv() (key, from string, err error) {
	key, file := os.Getenv(envAPIKey), os.Getenv(envAPIKeyFile)
	switch {
	case key != "" && file != "":
		return "", "", badOption(envAPIKeyFile, "must not be set together with "+envAPIKey)
	case file != "":
		key, err = readKey(func() ([]byte, error) {
			return inTime(func() ([]byte, error) { return readStart(file) })
		})
		if err != nil {
			err = badOption(envAPIKeyFile, oneLine(err))
		}
		return key, envAPIKeyFile, err
	default:
		return key, envAPIKey, nil
	}
}

// APIKeyFile returns a source for [WithAPIKeySource] that reads the key from a file: one that is
// replaced there is that of the next call. The file has one line, with or without a line end,
// and is a regular one or a link to one, such as a secret of Kubernetes. Replace it by
// renaming a new one, so that none is read that is half written. A file that cannot be read,
// or has no key that [New] accepts, is an error of the source.
func APIKeyFile(name string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		return readKey(func() ([]byte, error) {
			info, err := os.Stat(name)
			if err != nil {
				return nil, err
			}
			if !info.Mode().IsRegular() { // a pipe may have no writer
				return nil, errors.New("it is not a regular file")
			}
			return readStart(name)
		})
	}
}

// keyFileTimeout bounds the reading of a key file: a named pipe may have no writer.
const keyFileTimeout = 5 * time.Second

// readKey returns the key in a file of one line, which read reads. No error has the name of
// the file, which could be the key in the wrong variable.
func readKey(read func() ([]byte, error)) (string, error) {
	text, err := read()
	if err != nil {
		if path, ok := errors.AsType[*fs.PathError](err); ok {
			err = path.Err
		}
		return "", fmt.Errorf("the file cannot be read: %w", err)
	}
	key := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if reason := validate.APIKey(key); reason != "" {
		return "", errors.New("the key in the file " + reason)
	}
	return key, nil
}

// inTime returns what read does, if it returns within [keyFileTimeout].
func inTime(read func() ([]byte, error)) ([]byte, error) {
	type content struct {
		text []byte
		err  error
	}
	done := make(chan content, 1)
	go func() {
		text, err := read()
		done <- content{text, err}
	}()
	select {
	case file := <-done:
		return file.text, file.err
	case <-time.After(keyFileTimeout):
		return nil, os.ErrDeadlineExceeded
	}
}

func readStart(name string) ([]byte, error) {
	file, err := os.Open(name) // #nosec G304 G703 -- whoever sets the environment, or calls APIKeyFile, chooses the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return startOf(file)
}

// startOf reads as much of a file as a key and a line end can have, and a byte more.
func startOf(file io.Reader) ([]byte, error) {
	return io.ReadAll(io.LimitReader(file, int64(validate.MaxAPIKeyFile)+1))
}

// inEnv names the variable that an argument of [New] came from.
func inEnv(err error, keyFrom string) error {
	var wrong *ArgumentError
	if errors.As(err, &wrong) {
		switch wrong.Name {
		case "baseURL":
			wrong.Name = envBaseURL
			wrong.Reason = strings.ReplaceAll(wrong.Reason, "with WithPlainHTTP", "with "+envPlainHTTP+"=1")
		case "apiKey":
			wrong.Name = keyFrom
		}
	}
	return err
}
