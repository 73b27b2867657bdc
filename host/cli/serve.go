package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"meanwhile/host/app"
	"meanwhile/host/config"
)

// stopWithin bounds a graceful stop.
const stopWithin = 10 * time.Second

func newServe() *cobra.Command {
	settings := config.Settings()
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the host: the page, the agents and their questions",
		Long: "Runs the host until it is interrupted. The line it prints signs a browser in, once.\n" +
			"A stopping host records nothing for questions that are open: they are there again when it returns.\n\n" +
			"Each setting is taken from its flag, else from the environment (MEANWHILE_ASK_TIMEOUT for ask.timeout),\n" +
			"else from the settings file, else from the default. Keys of model providers come from the environment\n" +
			"only: DEEPSEEK_API_KEY or OPENAI_API_KEY. notify.webhook_secret and notify.ntfy_token have no flag.",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			src := config.Sources{Flags: map[string]string{}, File: cmd.Flags().Lookup("config").Value.String()}
			for _, s := range settings {
				if flag := cmd.Flags().Lookup(s.Flag); flag != nil && flag.Changed {
					src.Flags[s.Key] = flag.Value.String()
				}
			}
			cfg, err := config.Load(src)
			var bad *config.Error
			if errors.As(err, &bad) {
				return &usageError{err}
			} else if err != nil {
				return err
			}
			return serve(cmd, cfg)
		},
	}
	for _, s := range settings {
		switch {
		case s.Flag == "": // from the environment or the file only
		case s.Bool():
			c.Flags().Bool(s.Flag, s.Default == "true", s.Help)
		default:
			c.Flags().String(s.Flag, s.Default, s.Help)
		}
	}
	c.Flags().String("config", "", "settings file (default $XDG_CONFIG_HOME/meanwhile/config.toml)")
	return c
}

func serve(cmd *cobra.Command, cfg config.Config) error {
	log := newLog(cmd.ErrOrStderr(), cfg)
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	a, err := app.Start(ctx, cfg, log)
	if err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), a.LoginURL())
	select {
	case <-ctx.Done():
		stop() // a second signal ends the process at once
		log.Info("stopping")
	case err = <-a.Failed():
		log.Error("stopping", "error", err)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	return errors.Join(err, a.Close(closing))
}

func newLog(w io.Writer, cfg config.Config) *slog.Logger {
	o := &slog.HandlerOptions{Level: cfg.Log}
	if cfg.LogFormat == config.JSON {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintf(cmd.OutOrStdout(), "meanwhile %s %s %s/%s\n", app.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}
