#!/usr/bin/env python3
"""Ask a person through Meanwhile, with Python's standard library alone.

    MEANWHILE_TOKEN=$(meanwhile token create --scope ask --label python) python3 ask.py

Ends with 0 when there is an answer, 4 when there is none yet, 5 when the
question ended without one, 1 when something failed. docs/examples/README.md
explains the settings and the four outcomes.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid

API = os.environ.get("MEANWHILE_URL", "http://127.0.0.1:7331") + "/api/v1/"
TOKEN = os.environ["MEANWHILE_TOKEN"]
KEY = os.environ.get("MEANWHILE_KEY", "python-example")  # the same key is the same session
TIMEOUT = int(os.environ.get("MEANWHILE_TIMEOUT", "120"))  # the person's seconds; -1: until they answer
HOLD_MS = int(os.environ.get("MEANWHILE_HOLD_MS", "50000"))  # how long one request stays open
PATIENCE = int(os.environ.get("MEANWHILE_PATIENCE", "600"))  # seconds for a late reply
HOLDER = str(uuid.uuid4())  # this process, for the leases on what it is handed
TRIES = 10

QUESTIONS = [
    {
        "id": "store",
        "question": "Which store should sessions use?",
        "options": [{"label": "Postgres"}, {"label": "SQLite"}],
    }
]


def call(method, path, body=None, headers=None):
    """One request. Each can be sent again without harm, so a cut one is."""
    request = urllib.request.Request(
        API + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json", **(headers or {})},
    )
    for left in reversed(range(TRIES)):
        try:
            with urllib.request.urlopen(request, timeout=HOLD_MS / 1000 + 30) as response:
                return json.load(response)
        except urllib.error.HTTPError as refusal:  # RFC 9457: code is for programs, detail for people
            if refusal.code in (429, 503) and left:
                time.sleep(1)
                continue
            problem = json.load(refusal)
            print(f"refused: {problem['code']}: {problem['detail']}", file=sys.stderr)
            sys.exit(5 if refusal.code == 410 else 1)
        except (OSError, ValueError) as trouble:  # no host, a cut connection, half a response
            if not left:
                sys.exit(f"no host: {trouble}")
            time.sleep(1)


def say(text):
    print(text, flush=True)


def tell(word, answers):
    """Says what was answered. JSON keeps control characters off the terminal."""
    for answer in answers:
        if not answer["selected"] and "custom" not in answer:
            say(f"{word}: {answer['id']} was skipped, nothing was chosen")
        else:
            say(f"{word}: {json.dumps(answer, separators=(',', ':'))}")


def acknowledge(session, *message_ids):
    """To be called once the answer was acted on. Dying before it costs nothing:
    the message comes again, with the same id."""
    done = call("POST", f"sessions/{session}/inbox/admit", {"messageIds": list(message_ids)})
    say(f"acknowledged: {len(done['admitted'])}")


def read_inbox(session):
    """What came while no process of this agent ran."""
    messages = call("POST", f"sessions/{session}/inbox/claim", {"holder": HOLDER})["messages"]
    for message in messages:
        text = "".join(part.get("text", "") for part in message["content"])
        try:
            tell("earlier", json.loads(text)["answers"])
        except (ValueError, KeyError, TypeError):  # a message of the person, not a reply
            say("message: " + json.dumps(text))
    if messages:
        acknowledge(session, *(message["id"] for message in messages))


def main():
    session = call("POST", "sessions", {"agent": {"name": "python example"}, "key": KEY})["sessionId"]
    read_inbox(session)

    asks = f"sessions/{session}/asks"
    ask = {"questions": QUESTIONS, "timeout": TIMEOUT, "holdMs": HOLD_MS, "holder": HOLDER}
    standing = call("POST", asks, ask, {"Idempotency-Key": str(uuid.uuid4())})

    def wait(hold_ms):
        return call("GET", f"{asks}/{standing['callId']}?holdMs={hold_ms}&holder={HOLDER}")

    # While the question is open there is nothing to decide: keep waiting.
    while standing["status"] == "waiting" or standing["status"] == "pending" and standing["remainingMs"] > 0:
        if standing["status"] == "waiting":
            say("waiting: asked without a limit, so nothing goes on without the answer")
        else:
            say("open: only this request is over, the person still has time")
        standing = wait(HOLD_MS)

    word = "answered"
    if standing["status"] == "pending":
        # Not a skip and not permission. The question stays open for the person.
        say("pending: nobody answered in time, so nothing was chosen")
        say("working: on what does not depend on the answer")
        word, until = "late", time.monotonic() + PATIENCE
        while standing["status"] != "answered":
            left_ms = int((until - time.monotonic()) * 1000)
            if left_ms <= 0:
                say("unanswered: what depends on it is not done; the next run finds the reply")
                sys.exit(4)
            standing = wait(min(HOLD_MS, left_ms))

    tell(word, standing["answers"])
    if "messageId" in standing:
        acknowledge(session, standing["messageId"])


main()
