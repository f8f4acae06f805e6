package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode"

	"github.com/cryptogw/gateway/internal/validate"
)

// Environment variables that [FromEnv] reads.
const (
	envBaseURL    = "GATEWAY_BASE_URL"
	envAPIKey     = "GATEWAY_API_KEY" // #nosec G101 -- the name of a variable
	envAPIKeyFile = "GATEWAY_API_KEY_FILE"
	envPlainHTTP  = "GATEWAY_PLAIN_HTTP"
)

// FromEnv returns a client as [New] does, from environment variables: the base URL from
// GATEWAY_BASE_URL, which is required, and the key from GATEWAY_API_KEY or from the file that
// GATEWAY_API_KEY_FILE names, as [APIKeyFile] reads it, once. GATEWAY_PLAIN_HTTP=1 is [WithPlainHTTP];
// opts come after it.
// An empty variable counts as not set. What is wrong is an [*ArgumentError] that names the variable,
// or the option.
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
		if key, err = readKey(file); err != nil {
			err = badOption(envAPIKeyFile, oneLine(err))
		}
		return key, envAPIKeyFile, err
	default:
		return key, envAPIKey, nil
	}
}

// APIKeyFile returns a source for [WithAPIKeySource] that reads the key from a file at each call: a
// regular file, or a link to one, with the key alone on one line, not in quotes and without NAME=
// before it. Replace it by renaming a new one. The error of a file that cannot be read, or has no key
// that [New] accepts, has neither its name nor its content.
func APIKeyFile(name string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return readKey(name) }
}

// readKey returns the key in a file. No error has the name of the file, which could be the
// key in the wrong variable.
func readKey(name string) (string, error) {
	text, err := readStart(name, validate.MaxAPIKeyFile)
	if err != nil {
		return "", err
	}
	key := strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	switch reason := validate.APIKey(key); {
	case strings.ContainsAny(key, "\r\n"):
		return "", errors.New("the file has several lines: write the key alone")
	case isAssignment(key):
		return "", errors.New("the file has NAME=...: write the value alone")
	case len(key) > 1 && key[0] == key[len(key)-1] && strings.ContainsAny(key[:1], `"'`):
		return "", errors.New("the file has quotes: write the key without them")
	case reason != "":
		return "", errors.New("the key in the file " + reason)
	default:
		return key, nil
	}
}

// isAssignment reports whether text is a line of a .env file or of a shell script. The = that
// end a key in base64 assign nothing.
func isAssignment(text string) bool {
	name, value, _ := strings.Cut(strings.TrimPrefix(text, "export "), "=")
	name = strings.TrimSpace(name)
	isOther := func(char rune) bool { return char != '_' && !unicode.IsLetter(char) && !unicode.IsDigit(char) }
	return name != "" && !unicode.IsDigit(rune(name[0])) && !strings.ContainsFunc(name, isOther) && strings.Trim(value, "=") != ""
}

// readStart reads at most most bytes of a regular file, and a byte more. Another one could block, such
// as a pipe without a writer.
func readStart(name string, most int) (string, error) {
	text, err := readRegular(name, most)
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	if err != nil {
		return "", fmt.Errorf("the file cannot be read: %w", err)
	}
	return text, nil
}

func readRegular(name string, most int) (string, error) {
	info, err := os.Stat(name) // #nosec G304 G703 -- whoever sets the environment, or calls APIKeyFile, chooses the file
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("it is not a regular file")
	}
	file, err := os.Open(name) // #nosec G304 G703 -- the same
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, int64(most)+1))
	return string(text), err
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
