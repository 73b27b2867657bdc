#!/usr/bin/env bash
# Ask a person through Meanwhile, with curl and jq.
#
#     MEANWHILE_TOKEN=$(meanwhile token create --scope ask --label curl) ./ask.sh
#
# Ends with 0 when there is an answer, 4 when there is none yet, 5 when the
# question ended without one, 1 when something failed. docs/examples/README.md
# explains the settings and the four outcomes.
set -euo pipefail

api=${MEANWHILE_URL:-http://127.0.0.1:7331}/api/v1
key=${MEANWHILE_KEY:-curl-example}     # the same key is the same session
timeout=${MEANWHILE_TIMEOUT:-120}      # the person's seconds; -1: until they answer
hold=${MEANWHILE_HOLD_MS:-50000}       # how long one request stays open
patience=${MEANWHILE_PATIENCE:-600}    # seconds for a late reply
holder=shell-$$-$RANDOM$RANDOM         # this process, for the leases on what it is handed
: "${MEANWHILE_TOKEN:?set it to a token with the scope ask}"
body=$(mktemp) # of the last response: a file, because a retry must write it anew
trap 'rm -f "$body"' EXIT

# call METHOD PATH [BODY [HEADER]]: one request. Each can be sent again without
# harm, so a cut one is. The token goes in by a pipe, not on the command line.
call() {
  local args=(-sS -X "$1" -o "$body" -w '%{http_code}' --max-time $((hold / 1000 + 30)) --retry 9 --retry-delay 1 --retry-all-errors)
  [ -z "${3:-}" ] || args+=(-H 'Content-Type: application/json' -d "$3")
  [ -z "${4:-}" ] || args+=(-H "$4")
  local status
  status=$(curl --config <(printf 'header = "Authorization: Bearer %s"' "$MEANWHILE_TOKEN") "${args[@]}" "$api/$2") || exit 1
  if [ "$status" = 200 ]; then
    cat "$body"
    return
  fi
  jq -r '"refused: " + .code + ": " + .detail' "$body" >&2 # RFC 9457
  [ "$status" = 410 ] && exit 5
  exit 1
}

# tell WORD: says what the answers on standard input are. ASCII JSON keeps control
# characters off the terminal.
tell() {
  local answer
  while read -r answer; do
    if jq -e '.selected == [] and (has("custom") | not)' <<<"$answer" >/dev/null; then
      echo "$1: $(jq -r .id <<<"$answer") was skipped, nothing was chosen"
    else
      echo "$1: $answer"
    fi
  done < <(jq -ca '.[]')
}

# acknowledge IDS: to be called once the answer was acted on. Dying before it
# costs nothing: the message comes again, with the same id.
acknowledge() {
  local done
  done=$(call POST "sessions/$session/inbox/admit" "{\"messageIds\":$1}")
  echo "acknowledged: $(jq '.admitted | length' <<<"$done")"
}

session=$(call POST sessions "$(jq -nc --arg key "$key" '{agent: {name: "curl example"}, key: $key}')" | jq -r .sessionId)

# What came while no process of this agent ran.
claimed=$(call POST "sessions/$session/inbox/claim" "{\"holder\":\"$holder\"}")
while read -r text; do
  if answers=$(jq -ce 'fromjson | .answers | arrays' <<<"$text" 2>/dev/null); then
    tell earlier <<<"$answers"
  else
    echo "message: $text" # of the person, not a reply
  fi
done < <(jq -ca '.messages[] | [.content[].text // ""] | join("")' <<<"$claimed")
ids=$(jq -c '[.messages[].id]' <<<"$claimed")
[ "$ids" = '[]' ] || acknowledge "$ids"

ask=$(jq -nc --argjson timeout "$timeout" --argjson hold "$hold" --arg holder "$holder" '{
  questions: [{id: "store", question: "Which store should sessions use?", options: [{label: "Postgres"}, {label: "SQLite"}]}],
  timeout: $timeout, holdMs: $hold, holder: $holder}')
standing=$(call POST "sessions/$session/asks" "$ask" "Idempotency-Key: $holder-1")
call_id=$(jq -r .callId <<<"$standing")

# wait_for MS: holds for the outcome again.
wait_for() { call GET "sessions/$session/asks/$call_id?holdMs=$1&holder=$holder"; }

# state: answered, waiting, open (pending, and time is left) or pending.
state() { jq -r 'if .status == "pending" and .remainingMs > 0 then "open" else .status end' <<<"$standing"; }

# While the question is open there is nothing to decide: keep waiting.
while :; do
  case $(state) in
  waiting) echo "waiting: asked without a limit, so nothing goes on without the answer" ;;
  open) echo "open: only this request is over, the person still has time" ;;
  *) break ;;
  esac
  standing=$(wait_for "$hold")
done

word=answered
if [ "$(state)" = pending ]; then
  # Not a skip and not permission. The question stays open for the person.
  echo "pending: nobody answered in time, so nothing was chosen"
  echo "working: on what does not depend on the answer"
  word=late
  until=$((SECONDS + patience))
  while [ "$(state)" != answered ]; do
    left=$(((until - SECONDS) * 1000))
    if [ "$left" -le 0 ]; then
      echo "unanswered: what depends on it is not done; the next run finds the reply"
      exit 4
    fi
    standing=$(wait_for $((left < hold ? left : hold)))
  done
fi

jq -c .answers <<<"$standing" | tell "$word"
ids=$(jq -c '[.messageId // empty]' <<<"$standing")
[ "$ids" = '[]' ] || acknowledge "$ids"
