package main

import (
	"errors"
	"flag"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/cryptogw/gateway/cmd/internal/commandline"
)

// Bounds of [couldBeKey].
const (
	maxShown   = 20       // of an argument that is shown, in bytes
	maxKeyFile = 64 << 10 // of a file with a key, in bytes; larger ones have none
)

// named returns an argument in quotes for the text of an error, or other if it could be the
// key, typed in the wrong place: errors are kept in logs.
func named(argument, other string) string {
	if couldBeKey(argument) {
		return other
	}
	return strconv.Quote(argument)
}

// couldBeKey reports whether an argument could be a key. The commands and flags, also with
// a typing error, are a few lower-case letters and hyphens, which most keys are not.
func couldBeKey(argument string) bool {
	if len(argument) > maxShown || strings.Trim(argument, "abcdefghijklmnopqrstuvwxyz-") != "" {
		return true
	}
	content, readable := keyFile()
	for _, key := range []string{os.Getenv(envAPIKey), os.Getenv(envAPIKeyFile), content} {
		if key != "" && (strings.Contains(key, argument) || strings.Contains(argument, key)) {
			return true
		}
	}
	return !readable
}

// keyFile returns the key in the file that the environment names, "" if it names none, and
// whether it could be read. A named pipe is not read: it may have no writer.
func keyFile() (key string, readable bool) {
	name := os.Getenv(envAPIKeyFile)
	if name == "" {
		return "", true
	}
	info, err := os.Stat(name) // #nosec G703 -- whoever sets the environment chooses the file
	if err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	file, err := os.Open(name) // #nosec G304 G703 -- as above
	if err != nil {
		return "", false
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxKeyFile+1))
	return strings.TrimSpace(string(content)), err == nil && len(content) <= maxKeyFile
}

// flagError returns the text of an error of package flag, without a name or value that could
// be the key. For a flag that is not defined it asks whether another one was meant.
func flagError(flags *flag.FlagSet, err error) string {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		if couldBeKey(name) {
			return "a flag is not defined"
		}
		var names []string
		flags.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
		return "there is no flag -" + name + commandline.Similar(name, names, "-")
	}
	if strings.HasPrefix(text, "bad flag syntax: ") {
		return "a flag begins with more than two hyphens, or has no name"
	}
	for _, begin := range []string{"invalid value ", "invalid boolean value "} {
		rest, ok := strings.CutPrefix(text, begin)
		quoted, err := strconv.QuotedPrefix(rest)
		if !ok || err != nil {
			continue
		}
		if value, err := strconv.Unquote(quoted); err != nil || couldBeKey(value) {
			return begin + strings.TrimPrefix(rest, quoted+" ")
		}
	}
	return text
}

// withoutPath returns why a file cannot be used, without its name, which could be the key.
func withoutPath(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err
	}
	return err
}

// withoutHost returns why an address cannot be used, without its host if that could be the
// key. An IP address is shown.
func withoutHost(err error, host string) error {
	if _, noAddress := netip.ParseAddr(host); host == "" || noAddress == nil || !couldBeKey(host) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), host, "its host"))
}
