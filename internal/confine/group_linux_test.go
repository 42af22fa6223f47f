package confine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGroupsAreMadeOnlyWhereTheyWereDelegated(t *testing.T) {
	yes := func(string) bool { return true }
	no := func(string) bool { return false }
	tests := map[string]struct {
		self, controllers string
		marked            func(string) bool
		why               string
	}{
		"version 1 only":         {self: "4:memory:/x\n", marked: yes, why: "no control groups of version 2"},
		"version 2 for nothing":  {self: "4:memory:/\n0::/\n", controllers: "hugetlb\n", marked: yes, why: "memory is not available"},
		"somebody else's groups": {self: "0::/user.slice\n", controllers: "memory pids\n", marked: no, why: "not delegated"},
		"delegated":              {self: "0::/system.slice/hermesd.service\n", controllers: "cpu memory pids\n", marked: yes},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			self := filepath.Join(root, "self")
			_, path, _ := strings.Cut(tt.self, "0::")
			own := filepath.Join(root, strings.TrimSpace(path))
			if err := os.MkdirAll(own, 0o700); err != nil {
				t.Fatal(err)
			}
			for file, content := range map[string]string{self: tt.self, filepath.Join(own, "cgroup.controllers"): tt.controllers} {
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			dir, why := delegated(root, self, tt.marked)
			if tt.why != "" {
				if dir != "" || !strings.Contains(why, tt.why) {
					t.Errorf("in %q, why %q", dir, why)
				}
				if _, err := os.Stat(filepath.Join(own, "daemon")); err == nil {
					t.Error("a group was made all the same")
				}
				return
			}
			if dir != own || why != "" {
				t.Fatalf("in %q, why %q", dir, why)
			}
			g, err := newGroup(filepath.Join(dir, "program-1"), &Spec{Limits: Limits{Data: 1 << 30, Processes: 100}})
			if err != nil {
				t.Fatal(err)
			}
			for file, want := range map[string]string{
				"daemon/cgroup.procs": "0", "cgroup.subtree_control": "+memory +pids", "program-1/memory.max": "1073741824", "program-1/pids.max": "100",
			} {
				if got, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(got) != want {
					t.Errorf("%s: %q, %v; want %q", file, got, err, want)
				}
			}
			if err := g.folder.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
