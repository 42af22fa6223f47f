// Command protogen compiles proto files to Go without protoc: protocompile parses them, and the two official Go plugins,
// built from this module, write the code beside each file.
//
//	go run -C tools ./protogen ../pluginsdk/pluginpb/plugin.proto
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// plugins are run in this order; both write files relative to the proto file.
var plugins = []string{
	"google.golang.org/protobuf/cmd/protoc-gen-go",
	"google.golang.org/grpc/cmd/protoc-gen-go-grpc",
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("usage: protogen FILE.proto …")
	}
	for _, file := range os.Args[1:] {
		if err := generate(file); err != nil {
			log.Fatalf("protogen: %s: %v", file, err)
		}
	}
}

func generate(file string) error {
	dir, name := filepath.Split(file)
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{dir}}),
		SourceInfoMode: protocompile.SourceInfoStandard, // comments become Go comments
	}
	files, err := compiler.Compile(context.Background(), name)
	if err != nil {
		return err
	}
	parameter := "paths=source_relative"
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{name},
		Parameter:      &parameter,
		ProtoFile:      withImports(files[0], map[string]bool{}),
	}
	in, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	for _, plugin := range plugins {
		if err := run(plugin, in, dir); err != nil {
			return err
		}
	}
	return nil
}

// withImports lists a file's descriptor after those that it imports.
func withImports(file protoreflect.FileDescriptor, seen map[string]bool) []*descriptorpb.FileDescriptorProto {
	if seen[file.Path()] {
		return nil
	}
	seen[file.Path()] = true
	var list []*descriptorpb.FileDescriptorProto
	imports := file.Imports()
	for i := range imports.Len() {
		list = append(list, withImports(imports.Get(i).FileDescriptor, seen)...)
	}
	return append(list, protoutil.ProtoFromFileDescriptor(file))
}

func run(plugin string, in []byte, dir string) error {
	cmd := exec.Command("go", "run", plugin)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", plugin, err)
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil {
		return fmt.Errorf("%s: %w", plugin, err)
	}
	if response.Error != nil {
		return fmt.Errorf("%s: %s", plugin, *response.Error)
	}
	for _, f := range response.File {
		if err := os.WriteFile(filepath.Join(dir, f.GetName()), []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
