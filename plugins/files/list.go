package main

import (
	"context"
	"time"
)

type listInput struct {
	Path   string `json:"path,omitempty" jsonschema:"the directory, relative to the working directory" default:"." maxLength:"4096"`
	Depth  int    `json:"depth,omitempty" jsonschema:"how many levels to go down" default:"1" minimum:"1" maximum:"20"`
	Glob   string `json:"glob,omitempty" jsonschema:"only names that match, for example *.go or src/**/*.ts" maxLength:"500"`
	Hidden bool   `json:"hidden,omitempty" jsonschema:"also names that begin with a dot"`
	Limit  int    `json:"limit,omitempty" jsonschema:"most entries" default:"200" minimum:"1" maximum:"2000"`
}

type listEntry struct {
	Path     string `json:"path"`
	Kind     string `json:"kind" enum:"file,directory,link,pipe,socket,device"`
	Size     int64  `json:"size,omitempty" jsonschema:"bytes, of files"`
	Modified string `json:"modified,omitempty" jsonschema:"RFC 3339"`
}

type listOutput struct {
	Entries   []listEntry `json:"entries"`
	Truncated bool        `json:"truncated,omitempty" jsonschema:"there are more entries than were looked at or shown"`
}

func (f *files) list(ctx context.Context, in listInput) (listOutput, error) {
	match, err := compileGlob(in.Glob)
	if err != nil {
		return listOutput{}, err
	}
	tops, err := f.space.tops(in.Path)
	if err != nil {
		return listOutput{}, err
	}
	out := listOutput{Entries: []listEntry{}}
	w := walk{depth: in.Depth, hidden: in.Hidden}
	for _, top := range tops {
		err := w.run(ctx, top, func(p place, d entry) bool {
			if !match.matches(p.show, d.Name()) {
				return true
			}
			if len(out.Entries) == in.Limit {
				out.Truncated = true
				return false
			}
			e := listEntry{Path: p.show, Kind: kind(d.Type())}
			if info, err := p.root.Lstat(p.name); err == nil { // else it has just gone
				e.Modified = info.ModTime().UTC().Format(time.RFC3339)
				if info.Mode().IsRegular() {
					e.Size = info.Size()
				}
			}
			out.Entries = append(out.Entries, e)
			return true
		})
		if err != nil {
			return listOutput{}, err
		}
	}
	out.Truncated = out.Truncated || w.truncated
	return out, nil
}
