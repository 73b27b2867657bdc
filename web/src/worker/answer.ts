// Sends what a notification's button says, while no page is open.

import type { Payload } from "./notice.ts";

/**
 * An open ask is settled by its event; one that carried on meanwhile takes the same answer late.
 * True only when the host has said that it has it.
 */
export async function sendAnswer(
  p: Payload,
  token: string,
  submissionId: string,
  send: typeof fetch,
): Promise<boolean> {
  if (p.questionId === undefined || p.send === undefined) return false;
  const answer = { answers: [{ id: p.questionId, selected: [p.send] }] };
  const call = async (method: string, params: unknown): Promise<Record<string, unknown>> => {
    const response = await send("/rpc", {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
      credentials: "omit",
    });
    const body: { result?: Record<string, unknown> } = await response.json();
    return body.result ?? {};
  };
  try {
    if (p.eventId) {
      const settled = await call("remote/settle", { eventId: p.eventId, result: answer });
      if (settled.taken === true) return true;
      if (settled.refused) return false;
    }
    if (!p.sessionId || !p.callId) return false;
    const late = { sessionId: p.sessionId, callId: p.callId, answer, submissionId };
    return (await call("userQuestions/answer", late)).accepted === true;
  } catch {
    return false;
  }
}
