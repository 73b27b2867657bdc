package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestFocusPauses(t *testing.T) {
	r := newRig(t)
	r.boot()
	r.upsert(row("s", 3, active("c1", "open")))
	r.deliver("d1", "e1", "c1", true)
	r.act(key, "focus") // before the first frame: counts when it comes
	r.claim(60_000)
	want(t, r.card(key), "countdown.state=focused", "countdown.remainingMs=60000", "focus=")
	r.sleep(30_000)
	want(t, r.card(key), "countdown.remainingMs=60000")
	r.act(key, "blur")
	r.sleep(10_000)
	want(t, r.card(key), "countdown.state=counting", "countdown.remainingMs=50000")
	r.act(key, "focus")
	r.step(doc{"type": "window", "visible": false})
	r.sleep(10_000)
	want(t, r.card(key), "countdown.state=counting", "countdown.remainingMs=40000")
	r.step(doc{"type": "window", "visible": true})
	want(t, r.card(key), "countdown.state=focused")
}

func TestHiddenCardStillExpires(t *testing.T) {
	r := newRig(t)
	r.open()
	r.act(key, "hide")
	if len(r.did("respond")) > 0 {
		t.Error("hiding sent something")
	}
	want(t, r.card(key), "hidden=true", "state=open")
	r.sleep(60_000)
	want(t, r.card(key), "channel=none")
	r.act(key, "open")
	want(t, r.card(key), "hidden=")
	if len(r.did("reveal")) != 1 {
		t.Error("not revealed")
	}
}

func TestTakeTimeSurvivesAReload(t *testing.T) {
	r := newRig(t)
	r.open()
	r.sleep(10_000)
	r.act(key, "wait")
	want(t, r.card(key), "countdown.state=waiting", "countdown.remainingMs=50000")
	again := newRig(t)
	again.stored = r.stored
	again.init(nil)
	again.up("me2")
	again.list(row("s", 3, active("c1", "open")))
	again.deliver("d1", "e1", "c1", true)
	again.claim(40_000)
	want(t, again.card(key), "countdown.state=waiting", "restored=")
	again.sleep(100_000)
	want(t, again.card(key), "countdown.state=waiting", "channel=ready")
}

func TestZeroFrameWaits(t *testing.T) {
	r := newRig(t)
	r.boot()
	r.deliver("d1", "e1", "c1", true)
	r.claim(0)
	r.sleep(10_000)
	want(t, r.card(key), "countdown.state=waiting", "channel=ready")
}

func TestSuspendExpiresOnlyThePristine(t *testing.T) {
	r := newRig(t)
	r.open()
	r.now.Wall += 3_600_000 // a wall step amid steady ticks
	r.tick(1000)
	want(t, r.card(key), "countdown.state=counting", "countdown.remainingMs=59000")
	r.act(key, "custom", "q", 0, "text", "x")
	r.now.Wall += 3_600_000
	r.tick(6000)
	want(t, r.card(key), "countdown.state=editing", "channel=ready")
}

func TestDraftFromTheNewestOtherTab(t *testing.T) {
	a := newRig(t)
	a.open()
	a.act(key, "custom", "q", 0, "text", "from A")
	b := newRig(t)
	b.stored = map[string]string{}
	for k, v := range a.stored {
		b.stored[k] = v
	}
	b.init(doc{"tab": "T2"})
	b.up("me")
	b.list(row("s", 3, active("c1", "open")))
	b.synced()
	want(t, b.card(key), "questions.0.custom=from A", "restored=true")
	b.act(key, "custom", "q", 0, "text", "")
	if len(b.stored) != 2 { // the disposition stays
		t.Errorf("stored %v", b.stored)
	}
	if b.stored["mw/draft/"+key+"/T1"] != a.stored["mw/draft/"+key+"/T1"] {
		t.Error("a tab changed another's draft")
	}
	// Once the ask is gone only its own goes.
	b.upsert(row("s", 5))
	if len(b.stored) != 1 {
		t.Errorf("stored %v", b.stored)
	}
}

func TestForeignDraftIsShownOnceItIsOld(t *testing.T) {
	a := newRig(t)
	a.open()
	a.act(key, "custom", "q", 0, "text", "from A")
	b := newRig(t)
	b.stored = a.stored
	b.now.Wall += 11 * 60_000
	b.init(doc{"tab": "T2"})
	b.up("me")
	b.list(row("s", 9))
	b.synced()
	want(t, b.card(key+"/T1"), "state=ended", "ended.reason=closed", "questions.0.custom=from A")
	b.act(key+"/T1", "dismiss")
	if len(b.stored) != 0 {
		t.Errorf("stored %v", b.stored)
	}
}

func TestBadStoredItems(t *testing.T) {
	r := newRig(t)
	fit := `{"v":1,"at":1,"s":"s","c":"c1","index":0,"answers":[{"selected":["Oracle"],"custom":"","skipped":false}],"q":[{"id":"db","text":"?"}]}`
	r.stored = map[string]string{
		"mw/draft/" + key + "/T1": fit, // a label that is not offered
		"mw/draft/x/T1":           `{"v":99}`,
		"mw/draft/y/T1":           `nonsense`,
		"mw/other":                `1`,
	}
	r.init(nil)
	r.up("me")
	r.list(row("s", 3, active("c1", "open")))
	r.synced()
	want(t, r.card(key), "edited=", "questions.0.selected=[]")
	if _, ok := r.stored["mw/draft/x/T1"]; ok {
		t.Error("an item that nothing can read stays")
	}
	if _, ok := r.stored["mw/other"]; !ok {
		t.Error("another's item went")
	}
}

func TestStorageFails(t *testing.T) {
	r := newRig(t)
	r.open()
	r.act(key, "custom", "q", 0, "text", "x")
	r.step(doc{"type": "storage", "failed": true})
	want(t, r.view(doc{"view": "cards"}), "storage=memory")
	want(t, r.card(key), "storage=memory", "questions.0.custom=x")
	if !slices.Contains(r.dirty, any("card:"+key)) {
		t.Error("a card on show keeps its old note")
	}
	r.stored = map[string]string{}
	r.step(doc{"type": "storage", "failed": false})
	if len(r.stored) != 1 {
		t.Error("not stored again")
	}
}

func TestPruning(t *testing.T) {
	r := newRig(t)
	for i := range StoredMax + 20 {
		k := fmt.Sprintf("c:s:old%d", i)
		r.stored["mw/draft/"+k+"/T9"] = fmt.Sprintf(`{"v":1,"at":%d,"s":"s","c":"old%d","index":0,`+
			`"answers":[{"selected":[],"custom":"x","skipped":false}],"q":[{"id":"a","text":"?"}]}`, r.now.Wall-1000+int64(i), i)
	}
	r.open2(t)
	r.act(key, "custom", "q", 0, "text", "live")
	if n := len(r.stored); n != StoredMax {
		t.Errorf("%d items", n)
	}
	if r.stored["mw/draft/"+key+"/T1"] == "" {
		t.Error("the live one was pruned")
	}
	if r.stored["mw/draft/c:s:old0/T9"] != "" || r.stored[fmt.Sprintf("mw/draft/c:s:old%d/T9", StoredMax+19)] == "" {
		t.Error("not the oldest first")
	}
}

func (r *rig) open2(t *testing.T) {
	r.init(nil)
	r.up("me")
	r.list(row("s", 3, active("c1", "open")))
	r.deliver("d1", "e1", "c1", true)
	r.synced("e1")
}

func TestSubmitGoesToTheUnanswered(t *testing.T) {
	r := newRig(t)
	r.boot()
	qs := []doc{ask("a"), ask("b"), ask("c")}
	r.deliver("d1", "e1", "c1", true, qs...)
	r.act(key, "select", "q", 0, "o", 1, "pointer", true)
	want(t, r.card(key), "page=1")
	// A click meant for the page before.
	r.now.Mono += 399
	r.act(key, "select", "q", 1, "o", 1, "pointer", true)
	want(t, r.card(key), "page=1", "questions.1.selected=[]")
	r.act(key, "custom", "q", 1, "text", " \u200b ")
	r.act(key, "page", "to", 2)
	r.act(key, "skip", "q", 2, "on", true)
	r.act(key, "submit")
	want(t, r.card(key), "page=1", "hint.code=unanswered", "hint.field=b")
	if len(r.did("respond")) > 0 {
		t.Error("white space was an answer")
	}
	r.act(key, "skip", "q", 1, "on", true)
	r.act(key, "submit")
	if got := r.sentAnswers(); got != `[{"id":"a","selected":["SQLite"]},{"id":"b","selected":[]},{"id":"c","selected":[]}]` {
		t.Errorf("sent %s", got)
	}
}

func TestRecommendedIsADraft(t *testing.T) {
	r := newRig(t)
	r.boot()
	q := ask("db")
	q["options"] = []doc{{"label": "Postgres (Recommended)"}, {"label": "SQLite"}}
	r.deliver("d1", "e1", "c1", true, q)
	r.claim(5000)
	want(t, r.card(key), "questions.0.selected=[0]", "questions.0.options.0.recommended=true", "edited=", "countdown.state=counting")
	r.sleep(5000)
	if got := r.sentAnswers(); got != "ASK_TIMED_OUT" {
		t.Errorf("silence became %s", got)
	}
}

func TestPlanReview(t *testing.T) {
	const key = "e:s:e1"
	plan := doc{"id": "p", "question": "Go?", "detail": "# Plan", "options": []doc{{"label": "Yes (Recommended)"}, {"label": "No"}},
		"intent": doc{"kind": "plan-review", "approve": "Yes (Recommended)"}}
	for _, tc := range []struct {
		name string
		acts func(*rig)
		want string
	}{
		{"approve", func(r *rig) { r.act(key, "approve") }, `[{"id":"p","selected":["Yes (Recommended)"]}]`},
		{"changes", func(r *rig) { r.act(key, "custom", "q", 0, "text", "smaller"); r.act(key, "changes") }, `[{"custom":"smaller","id":"p","selected":[]}]`},
		{"no words", func(r *rig) { r.act(key, "custom", "q", 0, "text", "  "); r.act(key, "changes") }, `ASK_CANCELLED`},
		{"submit is not approval", func(r *rig) { r.act(key, "submit") }, ``},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			r.boot()
			r.deliver("d1", "e1", "", false, plan)
			want(t, r.card(key), "plan.detail=# Plan", "plan.approve=Yes (Recommended)", "plan.other=No", "questions.0.selected=[]")
			tc.acts(r)
			if got := r.sentAnswers(); got != tc.want {
				t.Errorf("sent %q, want %q", got, tc.want)
			}
		})
	}
	t.Run("anything else is generic", func(t *testing.T) {
		r := newRig(t)
		r.boot()
		odd := doc{"id": "p", "question": "Go?", "detail": "x", "options": []doc{{"label": "A"}, {"label": "B"}, {"label": "C"}},
			"intent": doc{"kind": "plan-review", "approve": "A"}}
		r.deliver("d1", "e1", "", false, odd)
		want(t, r.card(key), "plan=", "questions.0.options.2.label=C")
	})
}

func TestAnnouncements(t *testing.T) {
	r := newRig(t)
	r.boot()
	r.deliver("d1", "e1", "c1", true)
	if !r.said("arrived") {
		t.Error("an arrival was not told")
	}
	r.deliver("d2", "e2", "c2", true)
	r.deliver("d3", "e3", "c3", true)
	if r.said("arrived") {
		t.Error("more than one in three seconds")
	}
	r.tick(3000)
	want(t, r.did("announce")[0], "code=arrived", "n=2")
	// Again after a reconnect: no arrival.
	r.step(doc{"type": "down"})
	r.up("me2")
	r.list(row("s", 3))
	r.deliver("d4", "e1", "c1", true)
	r.tick(3000)
	if r.said("arrived") {
		t.Error("a reconnect was an arrival")
	}
	r.claim(70_000)
	told := ""
	for range 70 {
		r.tick(1000)
		for _, a := range r.did("announce") {
			told += fmt.Sprint(a["code"], a["n"], " ")
		}
	}
	if told != "left60000 left20000 carried-on<nil> " {
		t.Errorf("told %q", told)
	}
}

func TestNotifications(t *testing.T) {
	r := newRig(t)
	r.init(doc{"visible": false, "settings": doc{"notify": true}})
	r.up("me")
	r.list(row("s", 1))
	r.synced()
	r.deliver("d1", "e1", "c1", true)
	want(t, r.did("notify")[0], "key="+key, "kind=arrived")
	r.claim(10_000)
	r.sleep(8000)
	want(t, r.did("notify")[0], "kind=reminder")
	r.settled("e1", "result", "", "phone")
	want(t, r.did("unnotify")[0], "key="+key)
}

func TestAnotherBuild(t *testing.T) {
	r := newRig(t)
	r.open()
	r.act(key, "custom", "q", 0, "text", "x")
	up := doc{"type": "up", "clientId": "me2", "scopes": []string{"read", "answer"}, "protocol": 1, "sha256": "b",
		"build": doc{"sha256": "a", "reload": true}}
	r.step(up)
	if len(r.did("reload")) > 0 {
		t.Fatal("reloaded over an edit")
	}
	want(t, r.view(doc{"view": "cards"}), "build=other")
	r.list(row("s", 3, active("c1", "open")))
	r.deliver("d2", "e1", "c1", true)
	r.synced("e1")
	r.act(key, "submit")
	if len(r.did("reload")) > 0 {
		t.Fatal("reloaded over a submit")
	}
	r.settled("e1", "result", "", "me2")
	r.upsert(row("s", 5))
	if len(r.did("reload")) != 1 {
		t.Fatal("not reloaded")
	}
	// The extension keeps its module while the protocol matches.
	r = newRig(t)
	r.init(nil)
	up["build"] = doc{"sha256": "a", "reload": false}
	r.step(up)
	want(t, r.view(doc{"view": "cards"}), "conn=up", "build=")
	up["protocol"] = 2
	r.step(up)
	want(t, r.view(doc{"view": "cards"}), "conn=stopped", "stop=4400")
}

func TestLimits(t *testing.T) {
	r := newRig(t)
	r.boot()
	for i := range CardsMax + 1 {
		r.deliver(fmt.Sprint("d", i), fmt.Sprint("e", i), "", false)
	}
	if got := r.sentAnswers(); got != "CLIENT_FULL" {
		t.Errorf("beyond the limit sent %q", got)
	}
	want(t, r.view(doc{"view": "cards"}), "over=1")
	for i := range FollowsMax + 1 {
		id := fmt.Sprint("f", i)
		r.upsert(row(id, 1))
		r.step(doc{"type": "follow", "sessionId": id})
	}
	if len(r.did("abort")) != 1 {
		t.Error("no session was let go")
	}
	want(t, r.view(doc{"view": "transcript", "sessionId": "f0"}), "state=")
	want(t, r.view(doc{"view": "transcript", "sessionId": "f1"}), "state=loading")
}

func TestBadInputChangesNothing(t *testing.T) {
	r := newRig(t)
	r.open()
	before := r.card(key)
	for _, in := range []string{`{`, `[]`, `{"type":"init","tab":"a","nonce":"b"}`, `{"type":"what"}`, `{"type":"act"}`, `{"type":"act","key":5,"act":"x"}`,
		`{"type":"request","params":{}}`, `{"type":"up"}`, "{\"type\":\"\xff\"}"} {
		if _, refused := r.m.Step(r.now, []byte(in)); refused == nil || refused.Code != "BAD_INPUT" {
			t.Errorf("%s: %v", in, refused)
		}
	}
	a, _ := json.Marshal(before)
	b, _ := json.Marshal(r.card(key))
	if string(a) != string(b) {
		t.Error("the card changed")
	}
	for _, n := range []int{60_001, 240_001} {
		r.act(key, "custom", "q", 0, "text", strings.Repeat("é", n))
		if kept := len([]rune(r.card(key)["questions"].([]any)[0].(map[string]any)["custom"].(string))); kept != min(n, 240_000) {
			t.Errorf("own words of %d characters of %d", kept, n)
		}
		r.act(key, "submit")
		want(t, r.card(key), "refused.code=BAD_ANSWER", "refused.part=custom", "busy=", "submit=true")
	}
}

// Text in a session's list view, which is the projection of a session that is
// not followed, and the order of it.
func TestSessionsView(t *testing.T) {
	r := newRig(t)
	r.boot()
	r.upsert(row("b", 9, active("c1", "open"), active("c2", "continued")), row("a", 5))
	v := r.view(doc{"view": "sessions"})
	want(t, v, "sessions.0.id=b", "sessions.0.open=1", "sessions.0.late=1", "sessions.1.id=a", "sessions.2.id=s", "sessions.0.agent.name=build-bot")
}

// Zero is told once, whoever's clock it was; a question that was carried on long
// before this page came is told by nobody.
func TestCarriedOnIsToldOnce(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(*rig)
		want int
	}{
		{"here", func(r *rig) { r.sleep(60_000) }, 0}, // told at zero
		{"elsewhere", func(r *rig) { r.settled("e1", "rejected", "ASK_TIMED_OUT", "phone") }, 1},
		{"while typing", func(r *rig) { r.act(key, "custom", "q", 0, "text", "x") }, 1},
		{"while sending", func(r *rig) { r.act(key, "select", "q", 0, "o", 1); r.act(key, "submit") }, 0}, // told to submit again
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			r.open()
			tc.do(r)
			r.upsert(row("s", 5, active("c1", "continued")))
			if got := r.said("carried-on"); got != (tc.want == 1) {
				t.Errorf("told %v", got)
			}
			r.upsert(row("s", 6, active("c1", "continued")))
			if r.said("carried-on") {
				t.Error("told again")
			}
		})
	}
	r := newRig(t)
	r.init(nil)
	r.up("me")
	r.list(row("s", 5, active("c1", "continued")))
	r.synced()
	if len(r.did("announce")) > 0 {
		t.Errorf("an old ask was announced: %v", r.fx)
	}
	want(t, r.card(key), "state=continued", "unread=", "carriedAt=")
}
