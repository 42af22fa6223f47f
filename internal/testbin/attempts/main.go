// Attempts is a program that tries what a confined program must not be able to do. Each argument is one attempt,
// "kind=target"; for each it prints "kind allowed" or "kind refused: reason". It does no harm where it is allowed.
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// maxChildren bounds the fork bomb, whatever the limit is.
const maxChildren = 1500

var attempts = map[string]func(target string) error{
	"read": func(path string) error {
		_, err := os.ReadFile(path)
		return err
	},
	"list": func(path string) error {
		_, err := os.ReadDir(path)
		return err
	},
	"write":  func(path string) error { return os.WriteFile(path, []byte("attempt"), 0o600) },
	"remove": func(path string) error { return os.Remove(path) },
	"dial": func(address string) error {
		network, address, _ := strings.Cut(address, ":")
		conn, err := net.DialTimeout(network, address, time.Second)
		if err != nil {
			return err
		}
		if network == "udp" {
			if _, err := conn.Write([]byte("attempt")); err != nil {
				return err
			}
		}
		return conn.Close()
	},
	"alloc": allocate,
	"bomb":  bomb,
	"run":   func(path string) error { return exec.Command(path).Run() },
	"tempdir": func(string) error {
		f, err := os.CreateTemp("", "attempt")
		if err != nil {
			return err
		}
		return errors.Join(f.Close(), os.Remove(f.Name()))
	},
	"env": func(name string) error {
		if _, ok := os.LookupEnv(name); !ok {
			return os.ErrNotExist
		}
		return nil
	},
	"stdin": func(string) error {
		_, err := os.Stdin.Read(make([]byte, 1))
		return err
	},
}

func main() {
	for _, arg := range os.Args[1:] {
		kind, target, _ := strings.Cut(arg, "=")
		if kind == "wait" {
			time.Sleep(time.Minute)
			continue
		}
		try, ok := attempts[kind]
		if !ok {
			fmt.Printf("%s unknown\n", kind)
			os.Exit(2)
		}
		if err := try(target); err != nil {
			fmt.Printf("%s refused: %v\n", kind, err)
		} else {
			fmt.Printf("%s allowed\n", kind)
		}
	}
}

// bomb starts children until one more is refused or the bound is reached.
func bomb(string) error {
	var children []*exec.Cmd
	defer func() {
		for _, c := range children {
			c.Process.Kill() //nolint:errcheck // it is ours and waits
			c.Wait()         //nolint:errcheck // killed
		}
	}()
	for range maxChildren {
		c := exec.Command("/bin/sleep", "60")
		if err := c.Start(); err != nil {
			return fmt.Errorf("after %s children: %w", strconv.Itoa(len(children)), err)
		}
		children = append(children, c)
	}
	return nil
}
