// A connection that is kept: it opens the socket, signs in, answers and sends pings, and opens it
// again after a loss. What is said over it is not its business.
//
// States: idle → connecting → online → waiting → connecting …; and two ends that only a person
// leaves: signedOut (4401, the token is not taken) and mismatched (4400, another protocol).

import { isObject, RemoteError } from "./frame.ts";
import { type Incoming, Peer, type Serve } from "./peer.ts";

export const subprotocol = "meanwhile.v1";
export const protocolVersion = 1;
/** How often each side asks the other whether it is alive. */
export const pingEveryMs = 20_000;
/** A side that has answered no ping for this long is dropped. */
export const silenceMaxMs = 60_000;
/** After waking from sleep, an old socket must prove itself this fast. */
export const wakeProofMs = 5_000;
/** Connecting and signing in together may take this long. */
export const connectMaxMs = 15_000;
const backoffFirstMs = 500;
const backoffMaxMs = 30_000;

export type LinkState = "idle" | "connecting" | "online" | "waiting" | "signedOut" | "mismatched";

/** The part of WebSocket this file uses, so that tests and Node can bring their own. */
export interface Socket {
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  send(text: string): void;
  close(code?: number, reason?: string): void;
}

export interface Welcome {
  protocol: number;
  clientId: string;
  hostVersion: string;
  modulePath: string;
  moduleSha256: string;
  scopes: string[];
}

export interface LinkOptions {
  url: string;
  client: { name: string; version: string };
  token: () => string | undefined;
  open?: (url: string, protocol: string) => Socket;
  random?: () => number;
  /** Serves the host's calls, `ping` excepted. */
  serve: Serve;
  notice: (method: string, params: unknown) => void;
  onState: (state: LinkState, detail: { retryInMs?: number }) => void;
  onOnline: (welcome: Welcome, peer: Peer) => void;
  onOffline: () => void;
}

export class Link {
  readonly #options: LinkOptions;
  #state: LinkState = "idle";
  #socket: Socket | undefined;
  #peer: Peer | undefined;
  #attempt = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #pinger: ReturnType<typeof setInterval> | undefined;
  #deadline: ReturnType<typeof setTimeout> | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  get state(): LinkState {
    return this.#state;
  }

  /** The peer while online. */
  get peer(): Peer | undefined {
    return this.#state === "online" ? this.#peer : undefined;
  }

  start(): void {
    if (this.#state === "connecting" || this.#state === "online") return;
    this.#attempt = 0;
    this.#connect();
  }

  /** The network is back or the page is looked at again: try now, and doubt an old socket. */
  wake(): void {
    if (this.#state === "waiting") this.start();
    else if (this.#state === "online") this.#prove(wakeProofMs);
  }

  /** Ends the connection for good; start may be called again. */
  stop(state: "idle" | "signedOut" = "idle"): void {
    this.#drop(1000, "bye", state);
  }

  #connect(): void {
    clearTimeout(this.#retry);
    this.#enter("connecting");
    const open = this.#options.open ?? openWebSocket;
    let socket: Socket;
    try {
      socket = open(this.#options.url, subprotocol);
    } catch {
      this.#lost(1006);
      return;
    }
    this.#socket = socket;
    const peer = new Peer(
      {
        send: (text) => socket.send(text),
        close: (code, reason) => this.#closeFrom(socket, code, reason),
      },
      (incoming) => this.#serve(incoming),
      this.#options.notice,
    );
    this.#peer = peer;
    this.#deadline = setTimeout(() => this.#closeFrom(socket, 4408, "SLOW"), connectMaxMs);
    socket.onopen = () => void this.#initialize(socket, peer);
    socket.onmessage = (event: { data: unknown }) => {
      if (socket !== this.#socket) return;
      if (typeof event.data === "string") peer.receive(event.data);
      else this.#closeFrom(socket, 4400, "PROTOCOL");
    };
    socket.onclose = (event: { code: number }) => {
      if (socket === this.#socket) this.#lost(event.code);
    };
  }

  async #initialize(socket: Socket, peer: Peer): Promise<void> {
    const token = this.#options.token();
    const params = {
      protocol: protocolVersion,
      client: this.#options.client,
      ...(token === undefined ? {} : { token }),
    };
    let welcome: Welcome;
    try {
      welcome = readWelcome(await peer.call("initialize", params));
    } catch (error) {
      if (socket !== this.#socket) return;
      // The host answers, then closes with 4401 or 4400. The answer may outrun the close, or be
      // all that a proxy lets through.
      const code = error instanceof RemoteError ? closeCodeOf(error) : 1011;
      this.#closeFrom(socket, code, "initialize");
      return;
    }
    if (socket !== this.#socket) return;
    clearTimeout(this.#deadline);
    this.#attempt = 0;
    this.#pinger = setInterval(() => this.#ping(), pingEveryMs);
    this.#prove(silenceMaxMs);
    this.#enter("online");
    this.#options.onOnline(welcome, peer);
  }

  async #serve(incoming: Incoming): Promise<unknown> {
    if (incoming.method === "ping") return { time: Date.now() };
    return this.#options.serve(incoming);
  }

  /** Pings at once and drops the connection unless that ping is answered in time. */
  #prove(withinMs: number): void {
    const socket = this.#socket;
    if (!socket) return;
    clearTimeout(this.#deadline);
    this.#deadline = setTimeout(() => this.#closeFrom(socket, 4408, "SILENT"), withinMs);
    this.#ping();
  }

  #ping(): void {
    const socket = this.#socket;
    const peer = this.#peer;
    if (!socket || !peer) return;
    peer.call("ping", {}).then(
      () => {
        if (socket !== this.#socket) return;
        clearTimeout(this.#deadline);
        this.#deadline = setTimeout(() => this.#closeFrom(socket, 4408, "SILENT"), silenceMaxMs);
      },
      () => {},
    );
  }

  #closeFrom(socket: Socket, code: number, reason: string): void {
    if (socket !== this.#socket) return;
    closeQuietly(socket, code, reason);
    // A half-open socket may never report its close, so the loss is taken as read.
    this.#lost(code);
  }

  #lost(code: number): void {
    const next = code === 4401 ? "signedOut" : code === 4400 ? "mismatched" : "waiting";
    const wasOnline = this.#state === "online";
    this.#clear();
    if (next !== "waiting") {
      this.#enter(next);
    } else {
      const ceiling = Math.min(backoffMaxMs, backoffFirstMs * 2 ** Math.min(this.#attempt, 10));
      const random = this.#options.random ?? Math.random;
      const retryInMs = Math.round(ceiling * (0.5 + random() / 2));
      this.#attempt++;
      this.#retry = setTimeout(() => this.#connect(), retryInMs);
      this.#enter("waiting", { retryInMs });
    }
    if (wasOnline) this.#options.onOffline();
  }

  #drop(code: number, reason: string, next: LinkState): void {
    const socket = this.#socket;
    const wasOnline = this.#state === "online";
    this.#clear();
    if (socket) closeQuietly(socket, code, reason);
    this.#enter(next);
    if (wasOnline) this.#options.onOffline();
  }

  #clear(): void {
    clearTimeout(this.#retry);
    clearTimeout(this.#deadline);
    clearInterval(this.#pinger);
    this.#socket = undefined;
    const peer = this.#peer;
    this.#peer = undefined;
    peer?.lose("connection lost");
  }

  #enter(state: LinkState, detail: { retryInMs?: number } = {}): void {
    this.#state = state;
    this.#options.onState(state, detail);
  }
}

function readWelcome(value: unknown): Welcome {
  const host = isObject(value) ? value.host : undefined;
  const module = isObject(value) ? value.module : undefined;
  if (!isObject(value) || !isObject(host) || !isObject(module)) throw notOurs();
  if (value.protocol !== protocolVersion) throw notOurs();
  const { clientId, scopes } = value;
  const { version } = host;
  const { path, sha256 } = module;
  if (
    typeof clientId !== "string" ||
    typeof version !== "string" ||
    typeof path !== "string" ||
    typeof sha256 !== "string" ||
    !Array.isArray(scopes)
  ) {
    throw notOurs();
  }
  return {
    protocol: protocolVersion,
    clientId,
    hostVersion: version,
    modulePath: path,
    moduleSha256: sha256,
    scopes: scopes.filter((scope) => typeof scope === "string"),
  };
}

function notOurs(): RemoteError {
  return new RemoteError({
    code: -32000,
    message: "another protocol",
    data: { code: "PROTOCOL" },
  });
}

function closeCodeOf(error: RemoteError): number {
  if (error.code === "PROTOCOL") return 4400;
  if (error.code === "BAD_TOKEN") return 4401;
  return 1011;
}

function closeQuietly(socket: Socket, code: number, reason: string): void {
  socket.onopen = null;
  socket.onmessage = null;
  socket.onclose = null;
  try {
    // Browsers take only 1000 and 3000–4999 from a page.
    socket.close(code === 1000 || code >= 3000 ? code : 4000, reason);
  } catch {
    // A socket that is still connecting, or already gone: nothing to close.
  }
}

function openWebSocket(url: string, protocol: string): Socket {
  return new WebSocket(url, protocol) as unknown as Socket;
}
