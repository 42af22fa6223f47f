package importer

import (
	"path/filepath"
	"slices"
	"strings"
)

// projectFolders are folders of a project in which programs keep their files.
var projectFolders = []string{".vscode", ".cursor", ".gemini", ".roo"}

// folder is where the file's program runs the servers of the present section: the folder of the project, as the programs
// document it for files that belong to one. "" where nothing is documented: for files that belong to a user, and
// whatever is not known.
func (im *importing) folder() string {
	if im.section.project != "" {
		return im.section.project
	}
	dir := filepath.Dir(im.section.path)
	if filepath.Base(im.section.path) == ".mcp.json" {
		return dir
	}
	if project := filepath.Dir(dir); slices.Contains(projectFolders, filepath.Base(dir)) && project != im.opts.Home {
		return project
	}
	return ""
}

// place gives a process the folder that it ran in, and makes its program's path absolute, which hermesd would take as
// relative to the configuration.
func (im *importing) place(words []string) {
	s := im.block
	home := im.folder()
	if s.Cwd.empty() && home == "" {
		if beside := filepath.Dir(im.section.path); im.allThere(beside, words) {
			home = beside
			im.note("cwd", "%s, since there is what its relative paths name", home)
		}
	} else if s.Cwd.empty() {
		im.note("cwd", "%s, where the file's program runs it", home)
	}
	switch cwd, known := s.Cwd.plain(); {
	case s.Cwd.empty():
		s.Cwd = literal(home)
	case known && !filepath.IsAbs(cwd):
		if home == "" {
			home = filepath.Dir(im.section.path)
		}
		s.Cwd = literal(filepath.Join(home, cwd))
		im.note("cwd", "%s was taken to be %s", cwd, filepath.Join(home, cwd))
	}
	if s.Cwd.empty() {
		if relative := relativePaths(words); len(relative) > 0 {
			im.off("cwd", "it is not known what relative paths such as %s start at: write cwd", relative[0])
		}
		return
	}
	program, literally := s.Command[0].plain()
	if cwd, known := s.Cwd.plain(); literally && known && strings.Contains(program, "/") && !filepath.IsAbs(program) {
		s.Command[0] = literal(filepath.Join(cwd, program))
		im.note("command", "%s was taken to be %s", program, filepath.Join(cwd, program))
	}
}

// allThere reports whether a command line has relative paths, and all of them are in a folder.
func (im *importing) allThere(dir string, words []string) bool {
	relative := relativePaths(words)
	return im.opts.Exists != nil && len(relative) > 0 && !slices.ContainsFunc(relative, func(path string) bool {
		return !im.opts.Exists(filepath.Join(dir, path))
	})
}

// fileEndings are those of programs and their files. Packages may have such names, too, where a runner takes one.
var (
	fileEndings = []string{".js", ".mjs", ".cjs", ".ts", ".mts", ".tsx", ".py", ".rb", ".sh", ".jar", ".php", ".lua", ".pl", ".json", ".yaml", ".yml", ".toml", ".db", ".sqlite", ".env", ".dll", ".exe"}
	runners     = []string{"npx", "uvx", "bunx", "pnpx", "docker", "podman", "nerdctl"}
)

// isRunner reports whether a program fetches and starts others.
func isRunner(program text) bool {
	name, _ := program.plain()
	return slices.Contains(runners, filepath.Base(name))
}

// relativePaths are the words of a command line that are certainly relative paths.
func relativePaths(words []string) []string {
	var found []string
	for i, w := range words {
		if _, value, ok := strings.Cut(w, "="); ok && strings.HasPrefix(w, "-") {
			w = value
		}
		dotted := w == "." || w == ".." || strings.HasPrefix(w, "./") || strings.HasPrefix(w, "../")
		slashed := strings.Contains(w, "/")
		file := slices.Contains(fileEndings, filepath.Ext(w)) && (slashed || !slices.Contains(runners, filepath.Base(words[0])))
		if strings.ContainsAny(w, " \t\n:$@=*(") || filepath.IsAbs(w) || strings.HasPrefix(w, "~") || strings.HasPrefix(w, "-") {
			continue
		}
		if dotted || i == 0 && slashed || i > 0 && file {
			found = append(found, w)
		}
	}
	return found
}
