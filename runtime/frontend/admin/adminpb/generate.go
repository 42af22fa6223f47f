// Package adminpb is hermes.admin.v1: what the command line speaks to the daemon.
package adminpb

//go:generate go run -C ../../../../tools ./protogen ../runtime/frontend/admin/adminpb/admin.proto
//go:generate go run -C ../../../../tools ./protogen ../runtime/frontend/admin/adminpb/oversight.proto
