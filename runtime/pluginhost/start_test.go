package pluginhost_test

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/pluginhost"
	"github.com/hermesd/hermesd/runtime/provider"
)

func TestAFailedStartGivesItsReason(t *testing.T) {
	write := func(content string, mode os.FileMode) func(*testing.T, *pluginhost.Options) {
		return func(t *testing.T, o *pluginhost.Options) {
			o.Path = filepath.Join(t.TempDir(), "plugin")
			if err := os.WriteFile(o.Path, []byte(content), mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	path := func(p string) func(*testing.T, *pluginhost.Options) {
		return func(_ *testing.T, o *pluginhost.Options) { o.Path = p }
	}
	mode := func(modes ...string) func(*testing.T, *pluginhost.Options) {
		return func(_ *testing.T, o *pluginhost.Options) { o.Args = modes }
	}
	slow := func(modes ...string) func(*testing.T, *pluginhost.Options) {
		return func(_ *testing.T, o *pluginhost.Options) { o.Args, o.StartTimeout = modes, (1+slowness)*time.Second }
	}
	spoiled := func(t *testing.T, o *pluginhost.Options) { // a file where its temporary folder belongs
		if err := os.MkdirAll(o.StateDir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(o.StateDir, "tmp"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		edit      func(*testing.T, *pluginhost.Options)
		want      []string
		permanent bool
	}{
		"a state folder that is not":  {edit: spoiled, want: []string{"tmp: not a directory"}},
		"a missing file":              {edit: path("/no/such/plugin"), want: []string{"/no/such/plugin: there is no such file"}},
		"a program that PATH lacks":   {edit: path("no-such-plugin"), want: []string{"there is no such file"}},
		"a folder":                    {edit: path("/tmp"), want: []string{"is a folder, no program"}},
		"a file without permission":   {edit: write("#!/bin/sh\n", 0o600), want: []string{"may not execute it", "chmod +x"}},
		"a script without its shell":  {edit: write("#!/no/such/shell\n", 0o700), want: []string{"its interpreter or dynamic loader does not", "#!/no/such/shell"}},
		"a text":                      {edit: write("hello\n", 0o700), want: []string{"cannot execute it", "a text without a #! line"}},
		"an empty file":               {edit: write("", 0o700), want: []string{"it is empty"}},
		"a Windows program":           {edit: write("MZ\x90\x00\xff", 0o700), want: []string{"built for Windows"}},
		"a damaged program":           {edit: write("\x7fELF\x02\x01", 0o700), want: []string{"ELF header is damaged"}},
		"another architecture":        {edit: foreign, want: []string{"another architecture (" + otherArch() + ")"}},
		"a script that is no plugin":  {edit: write("#!/bin/sh\necho hello world\n", 0o700), want: []string{"not a plugin", `"hello world"`}},
		"no handshake and no word":    {edit: mode("exit-quietly"), want: []string{"exit status 0", "is it a plugin?"}},
		"an exit with a message":      {edit: mode("exit-at-start"), want: []string{"exit status 3", "cannot open the database"}},
		"a panic":                     {edit: mode("panic-at-start"), want: []string{"exit status 2", "it panicked", "panic at start"}},
		"a kill by the kernel":        {edit: mode("oom-at-start"), want: []string{"killed by SIGKILL", "for want of memory"}},
		"words before the handshake":  {edit: mode("talk-first"), want: []string{"prints before its handshake", "Welcome to the plugin!"}},
		"a megabyte before it":        {edit: mode("long-line-first"), want: []string{"prints before its handshake", "xxx"}},
		"silence":                     {edit: slow("silent"), want: []string{"did not say hello in time"}},
		"a stopped process":           {edit: slow("stopped-at-start"), want: []string{"did not say hello in time"}},
		"another protocol version":    {edit: mode("wrong-version"), want: []string{"incompatible API version"}},
		"another protocol":            {edit: mode("wrong-protocol"), want: []string{"netrpc"}},
		"a socket that is none":       {edit: slow("no-server"), want: []string{"/nowhere"}},
		"Describe hangs":              {edit: slow("hang-Describe"), want: []string{"said hello but did not answer in time: Describe"}},
		"Configure hangs":             {edit: slow("hang-Configure"), want: []string{"did not answer in time: Configure"}},
		"ListTools hangs":             {edit: slow("hang-ListTools"), want: []string{"did not answer in time: ListTools"}},
		"Describe crashes":            {edit: mode("crash-Describe"), want: []string{"exit status 7", "crash in Describe"}},
		"ListTools crashes":           {edit: mode("crash-ListTools"), want: []string{"exit status 7", "crash in ListTools"}},
		"an endless list":             {edit: mode("endless-list"), want: []string{"does not end within 10000 tools"}},
		"a list with another hash":    {edit: mode("lying-hash"), want: []string{"announced", "sha256:00"}},
		"a newer contract":            {edit: mode("next-contract"), want: []string{"speaks versions 2 to 3 of hermes.plugin"}, permanent: true},
		"a name that is none":         {edit: mode("bad-name"), want: []string{`describes itself with the name "no name\n"`}, permanent: true},
		"a refused configuration":     {edit: mode("refuse-config"), want: []string{"config/url: wrong host (it does not resolve)"}, permanent: true},
		"a configuration that misfit": {edit: mode("with-schema"), want: []string{"its configuration is wrong: config.url is required"}, permanent: true},
		"a schema that is none":       {edit: mode("broken-schema"), want: []string{"schema of its configuration cannot be used"}, permanent: true},
		"another binary than pinned": {edit: func(_ *testing.T, o *pluginhost.Options) { o.SHA256 = strings.Repeat("ab", 32) },
			want: []string{"the configuration pins abab"}, permanent: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			tt.edit(t, o)
			h := start(t, o)
			begin := time.Now()
			offer := h.await("a reason", func(o *provider.Offer) bool { return o.Status.Reason != "" })
			want := provider.Backoff
			if tt.permanent {
				want = provider.Quarantined
			}
			if offer.Status.State != want {
				t.Errorf("state %s, want %s", offer.Status.State, want)
			}
			for _, text := range tt.want {
				if !strings.Contains(offer.Status.Reason, text) {
					t.Errorf("reason %q lacks %q", offer.Status.Reason, text)
				}
			}
			if strings.Contains(offer.Status.Reason, "\n") {
				t.Errorf("reason has more than one line: %q", offer.Status.Reason)
			}
			h.stop()
			if took := time.Since(begin); took > strict(10*time.Second) {
				t.Errorf("took %v", took)
			}
		})
	}
}

// foreign makes the plugin a program for another architecture: all but its header is what it was.
func foreign(t *testing.T, o *pluginhost.Options) {
	program, err := os.ReadFile(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	machine := elf.EM_AARCH64
	if testArch == "arm64" {
		machine = elf.EM_X86_64
	}
	binary.LittleEndian.PutUint16(program[18:], uint16(machine)) // e_machine of the ELF header
	o.Path = filepath.Join(t.TempDir(), "foreign")
	if err := os.WriteFile(o.Path, program, 0o700); err != nil {
		t.Fatal(err)
	}
}

func otherArch() string {
	if testArch == "arm64" {
		return "amd64"
	}
	return "arm64"
}
