//go:build unix

package relay

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// reset returns an error if the kernel of the destination has reset a connection, since its process had not
// read everything.
func reset(nc net.Conn) error {
	return control(nc, func(fd int) error {
		code, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ERROR)
		if err == nil && code != 0 {
			err = fmt.Errorf("the destination reset the connection: %w", syscall.Errno(code))
		}
		return err
	})
}

// closedBefore returns an error if the destination has already closed its side. The goroutine that reads may
// not have run since then.
func closedBefore(nc net.Conn) error {
	return control(nc, func(fd int) error {
		n, _, err := syscall.Recvfrom(fd, make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if n == 0 && err == nil {
			return errEarly
		}
		if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR) {
			return nil
		}
		return err
	})
}

// control calls fn with the socket of a connection.
func control(nc net.Conn, fn func(fd int) error) (err error) {
	c, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	if ctlErr := raw.Control(func(fd uintptr) { err = fn(int(fd)) }); ctlErr != nil {
		return ctlErr
	}
	return err
}
