//go:build unix && !aix && !solaris

package main

import (
	"errors"
	"os"
	"syscall"
)

// openLocked opens the file of an order, which it creates if there is none, and locks it
// until it is closed or the process ends. It does not follow a symbolic link. A file that
// another process has locked is open too, to be read.
func openLocked(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600) // #nosec G304 -- the user chooses the directory
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) // #nosec G115 -- a descriptor is small
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return file, errLocked
	case err != nil:
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// syncDirectory writes the names in a directory to the disk.
func syncDirectory(path string) error {
	directory, err := os.Open(path) // #nosec G304 -- the user chooses the directory
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}
