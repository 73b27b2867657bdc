// The JSON-RPC 2.0 frames of the wire, decoded strictly: exact names, no unknown member.

/** The largest text frame either side may send. */
export const frameBytesMax = 1 << 20;

export type Id = number | string;

export interface RpcErrorBody {
  code: number;
  message: string;
  data?: unknown;
}

export type Frame =
  | { kind: "call"; id: Id; method: string; params: unknown }
  | { kind: "notice"; method: string; params: unknown }
  | { kind: "result"; id: Id; result: unknown }
  | { kind: "error"; id: Id | null; error: RpcErrorBody };

export const parseError = -32700;
export const invalidRequest = -32600;
export const methodNotFound = -32601;
export const internalError = -32603;
export const businessError = -32000;
export const requestCancelled = -32800;

/** An error the other side answered with. `code` is the business code, when it sent one. */
export class RemoteError extends Error {
  override name = "RemoteError";
  readonly rpcCode: number;
  readonly data: unknown;
  constructor(body: RpcErrorBody) {
    super(body.message);
    this.rpcCode = body.code;
    this.data = body.data;
  }
  get code(): string {
    return stringMember(this.data, "code");
  }
  get field(): string {
    return stringMember(this.data, "field");
  }
}

/** The connection went before the answer came: whether the call took effect is unknown. */
export class ConnectionLost extends Error {
  override name = "ConnectionLost";
}

/** A peer that does not speak the protocol. */
export class FrameError extends Error {
  override name = "FrameError";
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function stringMember(value: unknown, name: string): string {
  const member = isObject(value) ? value[name] : undefined;
  return typeof member === "string" ? member : "";
}

export function decode(text: string): Frame {
  let doc: unknown;
  try {
    doc = JSON.parse(text);
  } catch {
    throw new FrameError("frame is not JSON");
  }
  if (!isObject(doc)) throw new FrameError("frame is not an object");
  if (doc.jsonrpc !== "2.0") throw new FrameError("frame lacks jsonrpc 2.0");
  const id = doc.id;
  if ("method" in doc) {
    only(doc, ["jsonrpc", "id", "method", "params"]);
    const method = doc.method;
    if (typeof method !== "string" || method === "") throw new FrameError("method is not a name");
    const params = doc.params ?? {};
    if (!("id" in doc)) return { kind: "notice", method, params };
    if (!isId(id)) throw new FrameError("id is neither number nor string");
    return { kind: "call", id, method, params };
  }
  if ("error" in doc) {
    only(doc, ["jsonrpc", "id", "error"]);
    const error = doc.error;
    if (!isObject(error) || typeof error.code !== "number") throw new FrameError("bad error");
    if (id !== null && !isId(id)) throw new FrameError("id is neither number nor string");
    const message = typeof error.message === "string" ? error.message : "";
    return { kind: "error", id, error: { code: error.code, message, data: error.data } };
  }
  if (!("result" in doc)) throw new FrameError("frame is neither call nor response");
  only(doc, ["jsonrpc", "id", "result"]);
  if (!isId(id)) throw new FrameError("id is neither number nor string");
  return { kind: "result", id, result: doc.result };
}

export function encode(frame: Frame): string {
  switch (frame.kind) {
    case "call":
      return JSON.stringify({
        jsonrpc: "2.0",
        id: frame.id,
        method: frame.method,
        params: frame.params,
      });
    case "notice":
      return JSON.stringify({ jsonrpc: "2.0", method: frame.method, params: frame.params });
    case "result":
      return JSON.stringify({ jsonrpc: "2.0", id: frame.id, result: frame.result ?? null });
    case "error":
      return JSON.stringify({ jsonrpc: "2.0", id: frame.id, error: frame.error });
  }
}

function isId(value: unknown): value is Id {
  return typeof value === "string" || (typeof value === "number" && Number.isSafeInteger(value));
}

function only(doc: Record<string, unknown>, names: readonly string[]): void {
  for (const name of Object.keys(doc)) {
    if (!names.includes(name)) throw new FrameError(`unknown member ${name}`);
  }
}
