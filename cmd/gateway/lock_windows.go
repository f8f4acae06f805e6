package main

import (
	"errors"
	"os"
	"syscall"
)

// errorSharingViolation is ERROR_SHARING_VIOLATION of Windows.
const errorSharingViolation = syscall.Errno(32)

// openLocked opens the file of an order, which it creates if there is none, and shares it
// with no other process until it is closed or the process ends. A file that another process
// has open cannot be read.
func openLocked(name string) (*os.File, error) {
	path, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	handle, err := syscall.CreateFile(path, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	switch {
	case errors.Is(err, errorSharingViolation):
		return nil, errLocked
	case err != nil:
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	default:
		return os.NewFile(uintptr(handle), name), nil
	}
}

// syncDirectory does nothing: Windows syncs no directory.
func syncDirectory(string) error { return nil }
