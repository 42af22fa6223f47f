package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

// planted is what a plugin can put in the place of a file that the daemon may open.
var planted = map[string]func(path, target string) error{
	"fifo":   func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
	"link":   func(path, target string) error { return os.Symlink(target, path) },
	"folder": func(path, _ string) error { return os.MkdirAll(filepath.Join(path, "full"), 0o700) },
	"sparse": func(path, _ string) error {
		if err := os.WriteFile(path, []byte("\x00\x01k"), 0o600); err != nil { // an entry of the key "k"
			return err
		}
		return os.Truncate(path, 10<<30)
	},
	"many": func(path, _ string) error {
		for n := range 5000 {
			if err := os.WriteFile(fmt.Sprintf("%s.%d.value", path, n), nil, 0o600); err != nil {
				return err
			}
		}
		return nil
	},
}

// plant puts something at a path and makes its folder: {"kind": "link", "path": "...", "target": "..."}.
func plant(_ *service, _ context.Context, req *pb.InvokeRequest, _ send) *pb.InvokeResponse {
	var args struct{ Kind, Path, Target string }
	if err := json.Unmarshal(req.GetArguments(), &args); err != nil {
		return failure(&pb.Error{Code: "invalid_arguments", Message: err.Error()})
	}
	put := planted[args.Kind]
	if put == nil {
		return failure(&pb.Error{Code: "invalid_arguments", Message: "there is no kind " + args.Kind})
	}
	if err := os.MkdirAll(filepath.Dir(args.Path), 0o700); err != nil {
		return text("refused: " + err.Error())
	}
	if err := put(args.Path, args.Target); err != nil {
		return text("refused: " + err.Error())
	}
	return text("planted")
}
