package app

import (
	"context"
	"fmt"

	"meanwhile/host/internal/id"
	"meanwhile/shared/event"
)

// demoPrompt is what the demonstration's person has asked for already.
const demoPrompt = "Set up where this project keeps its sessions."

// playDemo gives an empty demonstration its first session, so that whoever
// opens the page sees a question, or one that was carried on from.
func (a *App) playDemo(ctx context.Context) error {
	if !a.cfg.Demo || len(a.sessions.List()) > 0 {
		return nil
	}
	log, err := a.sessions.Create(ctx, event.Header{})
	if err != nil {
		return fmt.Errorf("start the demonstration: %w", err)
	}
	ag, err := a.agents.Resume(ctx, log.ID())
	if err != nil {
		return fmt.Errorf("start the demonstration: %w", err)
	}
	return ag.Send(ctx, event.Message{ID: id.New(), Source: event.Source{Kind: event.SourceUser}, Text: demoPrompt})
}
