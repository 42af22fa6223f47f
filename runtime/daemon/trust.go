package daemon

import (
	"context"
	"log/slog"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/pluginhost/store"
	"github.com/hermesd/hermesd/runtime/provider"
)

// trust is what the operator has agreed to: the lock file, and the plugins that are installed.
type trust struct {
	lock      *store.Lock
	installed *store.Installed
	logger    *slog.Logger
	keepers   map[string]*store.Keeper
	shared    map[string]bool // providers whose binary comes from the store
	decide    chan string     // providers about which the operator decided anew
}

func newTrust(cfg *config.Config, logger *slog.Logger) *trust {
	t := &trust{
		lock:      store.OpenLock(filepath.Join(cfg.StateDir, "trust"), logger),
		installed: store.OpenInstalled(filepath.Join(cfg.StateDir, "store")),
		logger:    logger, keepers: map[string]*store.Keeper{}, shared: map[string]bool{},
	}
	t.decide = make(chan string, len(cfg.Plugins)+len(cfg.MCPServers))
	return t
}

// keeper is one provider's.
func (t *trust) keeper(name, kind string, shipped bool) *store.Keeper {
	k := t.lock.For(store.KeeperOptions{Name: name, Kind: kind, Shipped: shipped, OnChange: func() {
		select {
		case t.decide <- name:
		default: // it is full only if everybody is asked already
		}
	}})
	t.keepers[name] = k
	return k
}

// installation says where a plugin without a path is, at every start.
func (t *trust) installation(block *config.Plugin) func() (path, sha256 string, err error) {
	if !block.Installed() {
		return nil
	}
	t.shared[block.Name] = true
	return func() (string, string, error) {
		path, release, err := t.installed.Find(block.Name)
		if err != nil {
			return "", "", err
		}
		return path, release.SHA256, nil
	}
}

// reconsiderer is a provider that can judge anew what it may start and offer.
type reconsiderer interface{ Reconsider() }

// run keeps the lock file, and takes the operator's decisions to the providers.
func (t *trust) run(ctx context.Context, providers []provider.Runner, group *errgroup.Group) {
	group.Go(func() error {
		if err := t.lock.Run(ctx); err != nil {
			t.logger.Error("the lock file is not kept", "error", err)
			t.lock.Flush()
		}
		return nil
	})
	group.Go(func() error {
		if err := t.installed.Watch(ctx, func(name string) { t.installedAnew(providers, name) }); err != nil {
			t.logger.Error("what is installed while hermesd runs counts after a restart only", "error", err)
		}
		return nil
	})
	group.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case name := <-t.decide:
				for _, p := range providers {
					if r, ok := p.(reconsiderer); ok && p.Identity().Name == name {
						t.logger.Info("the operator decided about a provider", "provider", name)
						r.Reconsider()
					}
				}
			}
		}
	})
}

// installedAnew restarts a plugin whose installed release is another one now.
func (t *trust) installedAnew(providers []provider.Runner, name string) {
	for _, p := range providers {
		if r, ok := p.(interface{ Restart() }); ok && p.Identity().Name == name && t.shared[name] {
			t.logger.Info("another release of a plugin was installed", "provider", name)
			r.Restart()
		}
	}
}
