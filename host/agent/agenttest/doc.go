// Package agenttest helps tests that need live agents: a scripted model, a tool
// that waits for the test, a whole registry over sessions in memory, and a
// readable transcript of a log.
//
//	w := agenttest.New(t, agenttest.Options{Model: agenttest.Script(agenttest.Say("hello"))})
//	a := w.Create(event.Header{})
//
// Everything works inside synctest bubbles: synctest.Wait returns when the
// agents wait for the model, a tool or the disk (see sessiontest.Mem.Hold).
package agenttest
