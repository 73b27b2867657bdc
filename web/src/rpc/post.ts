// One unary call over HTTP, for when the socket is gone and an outcome must not wait for it.

import { ConnectionLost, decode, encode, FrameError, RemoteError } from "./frame.ts";

/** Browsers refuse a keepalive request with more than 64 KiB of body, all such requests together. */
const keepaliveBytesMax = 60_000;

export interface PostOptions {
  url: string;
  token: string;
  signal?: AbortSignal;
  fetch?: typeof fetch;
}

export async function post(
  method: string,
  params: unknown,
  options: PostOptions,
): Promise<unknown> {
  const send = options.fetch ?? fetch;
  const body = encode({ kind: "call", id: 1, method, params });
  let response: Response;
  let text: string;
  try {
    response = await send(options.url, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${options.token}` },
      body,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      // An outcome handed over while the page is closing still goes out, if it is small enough.
      keepalive: body.length * 3 <= keepaliveBytesMax,
      ...(options.signal ? { signal: options.signal } : {}),
    });
    text = await response.text();
  } catch {
    throw new ConnectionLost("no answer over HTTP");
  }
  let frame: ReturnType<typeof decode>;
  try {
    frame = decode(text);
  } catch (error) {
    if (!(error instanceof FrameError)) throw error;
    throw new ConnectionLost(`HTTP ${response.status} without a response frame`);
  }
  if (frame.kind === "result") return frame.result;
  if (frame.kind === "error") throw new RemoteError(frame.error);
  throw new ConnectionLost("HTTP answered with a call");
}
